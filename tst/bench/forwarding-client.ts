import { connect, type Socket } from "node:net";

const ANSWER_MS = 20_000;

/**
 * One MCP session on a connection of its own with as little around it as can be, so that what is measured is the server: a
 * request is one write, and an answer is read for its length alone.
 */
export class BenchSession {
  #socket: Socket | undefined;
  #session = "";
  #id = 0;
  #read: ((chunk: Buffer) => void) | undefined;
  #failed: (error: Error) => void = () => {};

  private constructor(private readonly url: URL) {}

  /** The connection; servers close one that is quiet for long. */
  #connection(): Socket {
    if (this.#socket !== undefined && !this.#socket.destroyed && this.#socket.writable) return this.#socket;
    const socket = connect({ host: this.url.hostname, port: Number(this.url.port), noDelay: true });
    socket.on("data", (chunk) => this.#read?.(chunk));
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
    await session.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return session;
  }

  /** The answer as it came over the wire. */
  async ask(method: string, params: object): Promise<string> {
    this.#id += 1;
    const text = await this.#post({ jsonrpc: "2.0", id: this.#id, method, params });
    if (!text.includes('"result"')) throw new Error(`${method}: ${text.slice(0, 300)}`);
    return text;
  }

  async echo(): Promise<void> {
    const text = await this.ask("tools/call", { name: "echo", arguments: { message: "hello" } });
    if (!text.includes("Echo: hello")) throw new Error(`echo: ${text.slice(0, 300)}`);
  }

  #post(message: object): Promise<string> {
    const body = JSON.stringify(message);
    const session =
      this.#session === "" ? "" : `mcp-session-id: ${this.#session}\r\nmcp-protocol-version: 2025-06-18\r\n`;
    return new Promise((resolve, reject) => {
      let text = "";
      const deadline = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS);
      this.#failed = (error) => {
        clearTimeout(deadline);
        reject(error);
      };
      this.#read = (chunk) => {
        text += chunk.toString("latin1");
        if (!isWhole(text)) return;
        clearTimeout(deadline);
        this.#session ||= /^mcp-session-id: *(\S+)/im.exec(text)?.[1] ?? "";
        resolve(text);
      };
      this.#connection().write(
        `POST ${this.url.pathname} HTTP/1.1\r\nhost: ${this.url.host}\r\naccept: application/json, text/event-stream\r\n` +
          `content-type: application/json\r\n${session}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    });
  }

  close(): void {
    this.#failed = () => {};
    this.#socket?.destroy();
  }
}

/** Whether an HTTP response has come to its end. */
function isWhole(text: string): boolean {
  const head = text.indexOf("\r\n\r\n");
  if (head === -1) return false;
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1];
  if (length !== undefined) return text.length >= head + 4 + Number(length);
  return /^transfer-encoding: *chunked/im.test(text.slice(0, head)) ? text.endsWith("\r\n0\r\n\r\n") : true;
}
