import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A request as the daemon reads it, and the number of the connection that it came on. */
export interface FakeRequest {
  readonly connection: number;
  readonly method: string;
  readonly name?: string;
  readonly args?: Record<string, unknown>;
  readonly session_id?: string;
  readonly observation_origin?: string;
}

/**
 * What becomes of a request: a result, a refusal, bytes as they are, bytes and then a closed connection, no answer ever, or a
 * closed connection.
 */
export type FakeAnswer =
  | { readonly result: unknown }
  | { readonly refuse: string; readonly exitCode?: number }
  | { readonly raw: string | Buffer }
  | { readonly cut: string | Buffer }
  | "hang"
  | "drop";

export type Behaviour = (request: FakeRequest) => FakeAnswer | Promise<FakeAnswer>;

/** A tool's result, as the daemon words one. */
export function textResult(text: string): { content: { text: string; type: "text" }[] } {
  return { content: [{ text, type: "text" }] };
}

/**
 * cua-driver's daemon as its socket shows it, without a desktop: answers as it is told to, and remembers every request that
 * it read, so that a test can prove what was sent and that nothing was sent twice.
 */
export class FakeCuaDaemon {
  readonly socketPath: string;
  /** What calls of tools are answered with. */
  behaviour: Behaviour = (request) => ({ result: textResult(`${request.name} ${JSON.stringify(request.args)}`) });
  metadata: Record<string, unknown> = {
    capability_version: "1",
    contract_version: "0.8.0",
    driver_version: "0.37.0",
    mcp_protocol_version: "2025-06-18",
    pid: 4242,
  };
  /** What `session_begin` is answered with; default: taken. */
  begin: FakeAnswer = { result: { session_begin: true } };
  /** Reads what is asked and answers nothing at all, as a stopped process does. */
  hangs = false;
  /** What `list` is answered with. */
  list: unknown = { tools: [] };
  /** Closes each connection when it is made, before anything is read. */
  dropsConnections = false;
  readonly requests: FakeRequest[] = [];
  /** The same as they were written. */
  readonly lines: string[] = [];
  /** Sessions whose control connection is open. */
  readonly sessions = new Set<string>();
  /** Sessions whose control connection was closed, in order. */
  readonly ended: string[] = [];
  /** How many connections were made. */
  connections = 0;
  readonly #folder: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
    this.socketPath = join(folder, "cua-driver.sock");
  }

  static async start(): Promise<FakeCuaDaemon> {
    const daemon = new FakeCuaDaemon(await mkdtemp(join(tmpdir(), "fake-cua-")));
    await daemon.listen();
    return daemon;
  }

  /** How many connections are open. */
  get open(): number {
    return this.#sockets.size;
  }

  /** The calls of tools that were read, without the rest. */
  get calls(): FakeRequest[] {
    return this.requests.filter(({ method }) => method === "call");
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.socketPath, resolve);
    });
  }

  /** Goes away as a killed process does: every connection is closed, and the socket takes none. */
  async die(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
    await rm(this.socketPath, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.die();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #serve(socket: Socket): void {
    this.connections += 1;
    const connection = this.connections;
    if (this.dropsConnections) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    let control: string | undefined;
    let unread = "";
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#sockets.delete(socket);
      if (control === undefined) return;
      this.sessions.delete(control);
      this.ended.push(control);
    });
    socket.setEncoding("utf8").on("data", (text: string) => {
      unread += text;
      const lines = unread.split("\n");
      unread = lines.pop() ?? "";
      for (const line of lines) {
        this.lines.push(line);
        const request = { ...(JSON.parse(line) as FakeRequest), connection };
        this.requests.push(request);
        if (request.method === "session_begin") control = this.#taken(request);
        void this.#answer(request).then((answer) => send(socket, answer));
      }
    });
  }

  #taken(request: FakeRequest): string | undefined {
    if (typeof this.begin === "string" || !("result" in this.begin) || request.session_id === undefined)
      return undefined;
    this.sessions.add(request.session_id);
    return request.session_id;
  }

  async #answer(request: FakeRequest): Promise<FakeAnswer> {
    if (this.hangs) return "hang";
    switch (request.method) {
      case "call":
        return this.behaviour(request);
      case "list":
        return { result: this.list };
      case "metadata":
        return { result: this.metadata };
      case "session_begin":
        return this.begin;
      case "session_end":
        return { result: { session_end: true } };
      case "sessions_list":
        return { result: { count: 0, sessions: [] } };
      default:
        return { refuse: `Unknown method: ${request.method}`, exitCode: 65 };
    }
  }
}

function send(socket: Socket, answer: FakeAnswer): void {
  if (answer === "hang" || socket.destroyed) return;
  if (answer === "drop") socket.destroy();
  else if ("raw" in answer) socket.write(answer.raw);
  else if ("cut" in answer) socket.end(answer.cut);
  else if ("result" in answer) socket.write(`${JSON.stringify({ ok: true, result: answer.result })}\n`);
  else socket.write(`${JSON.stringify({ ok: false, error: answer.refuse, exit_code: answer.exitCode ?? 1 })}\n`);
}
