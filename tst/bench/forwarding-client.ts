import { connect, type Socket } from "node:net";

const ANSWER_MS = 20_000;
/** The longest answer is a list of tools. */
const BUFFER_BYTES = 64 << 10;

/**
 * One MCP session on a connection of its own with as little around it as can be, so that what is measured is the server: a
 * request is one write, an answer is read for its length alone, and no stream and no timer of its own comes between.
 */
export class BenchSession {
  #socket: Socket | undefined;
  #session = "";
  #head: string;
  #id = 0;
  #text = "";
  #sent = 0;
  #answered: ((text: string) => void) | undefined;
  #failed: (error: Error) => void = () => {};
  readonly #deadline = setInterval(() => this.#checkDeadline(), 1_000).unref();

  private constructor(private readonly url: URL) {
    this.#head = headOf(url);
  }

  /** The connection; servers close one that is quiet for long. */
  #connection(): Socket {
    if (this.#socket !== undefined && !this.#socket.destroyed && this.#socket.writable) return this.#socket;
    const socket = connect({
      host: this.url.hostname,
      port: Number(this.url.port),
      noDelay: true,
      onread: {
        buffer: Buffer.alloc(BUFFER_BYTES),
        callback: (length, buffer) => {
          this.#read((buffer as Buffer).toString("latin1", 0, length));
          return true;
        },
      },
    });
    socket.on("error", (error) => this.#failed(error));
    socket.on("close", () => {
      if (this.#socket === socket) this.#failed(new Error("the server closed the connection"));
    });
    this.#socket = socket;
    return socket;
  }

  /** Initializes, and says so, as every client does. */
  static async open(url: string): Promise<BenchSession> {
    const session = new BenchSession(new URL(url));
    const clientInfo = { name: "bench", version: "1" };
    await session.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    await session.#post('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return session;
  }

  /** The answer as it came over the wire. */
  async ask(method: string, params: object): Promise<string> {
    this.#id += 1;
    const text = await this.#post(JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }));
    if (!text.includes('"result"')) throw new Error(`${method}: ${text.slice(0, 300)}`);
    return text;
  }

  async echo(): Promise<void> {
    const text = await this.ask("tools/call", { name: "echo", arguments: { message: "hello" } });
    if (!text.includes("Echo: hello")) throw new Error(`echo: ${text.slice(0, 300)}`);
  }

  /** `body` is ASCII. */
  #post(body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#answered = resolve;
      this.#failed = reject;
      this.#sent = performance.now();
      this.#connection().write(`${this.#head}${body.length}\r\n\r\n${body}`, "latin1");
    });
  }

  #read(chunk: string): void {
    const text = this.#text === "" ? chunk : this.#text + chunk;
    if (!isWhole(text)) {
      this.#text = text;
      return;
    }
    this.#text = "";
    this.#sent = 0;
    if (this.#session === "") {
      this.#session = /^mcp-session-id: *(\S+)/im.exec(text)?.[1] ?? "";
      this.#head = headOf(this.url, this.#session);
    }
    this.#answered?.(text);
  }

  #checkDeadline(): void {
    if (this.#sent === 0 || performance.now() - this.#sent < ANSWER_MS) return;
    this.#failed(new Error(`no answer within ${ANSWER_MS} ms`));
  }

  close(): void {
    clearInterval(this.#deadline);
    this.#failed = () => {};
    this.#socket?.destroy();
  }
}

/** What comes before a body's length in every request of a session. */
function headOf(url: URL, session = ""): string {
  const named = session === "" ? "" : `mcp-session-id: ${session}\r\nmcp-protocol-version: 2025-06-18\r\n`;
  return (
    `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\naccept: application/json, text/event-stream\r\n` +
    `content-type: application/json\r\n${named}content-length: `
  );
}

/** Whether an HTTP response has come to its end: by its length, or with the last chunk of one that is sent in chunks. */
function isWhole(text: string): boolean {
  if (text.endsWith("\r\n0\r\n\r\n")) return true;
  const head = text.indexOf("\r\n\r\n");
  if (head === -1) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  return length !== undefined && text.length >= head + 4 + Number(length);
}
