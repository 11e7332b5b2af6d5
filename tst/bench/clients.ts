import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Agent, request } from "undici";

/** One MCP session over HTTP with nothing around it: undici, and JSON written and read once. */
export class RawMcp {
  static readonly hello = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  };
  readonly #agent = new Agent({ connections: 64, pipelining: 1 });
  #session: string | undefined;
  #id = 0;

  constructor(private readonly url: string) {}

  static async open(url: string): Promise<RawMcp> {
    const mcp = new RawMcp(url);
    await mcp.initialize();
    return mcp;
  }

  /** Opens a session in the place of the one there was, on a connection that is there already. */
  async initialize(): Promise<void> {
    this.#session = undefined;
    await this.ask("initialize", RawMcp.hello);
  }

  /** Ends the session, and keeps the connection. */
  async end(): Promise<void> {
    const headers = { "mcp-session-id": this.#session ?? "" };
    await (await request(this.url, { method: "DELETE", dispatcher: this.#agent, headers })).body.dump();
  }

  async ask(method: string, params: object = {}): Promise<{ result?: Record<string, unknown>; error?: unknown }> {
    const text = await this.text(method, params);
    return JSON.parse(text.startsWith("event:") ? text.slice(text.indexOf("data: ") + 6) : text);
  }

  /** The answer unread. */
  async text(method: string, params: object = {}): Promise<string> {
    this.#id += 1;
    const response = await request(this.url, {
      method: "POST",
      dispatcher: this.#agent,
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }),
    });
    this.#session ??= response.headers["mcp-session-id"] as string | undefined;
    return await response.body.text();
  }

  async tool(name: string, args: object = {}): Promise<Record<string, unknown>> {
    const { result, error } = await this.ask("tools/call", { name, arguments: args });
    if (result === undefined || result.isError === true) throw new Error(`${name}: ${JSON.stringify(result ?? error)}`);
    return result;
  }

  async close(): Promise<void> {
    await this.end();
    await this.#agent.close();
  }
}

/** POSTs to (or GETs from) a bare server. */
export class RawHttp {
  readonly #agent = new Agent({ connections: 64, pipelining: 1 });

  constructor(private readonly url: string) {}

  async post(body: object, path = ""): Promise<unknown> {
    const options = { method: "POST", dispatcher: this.#agent, body: JSON.stringify(body) } as const;
    const response = await request(`${this.url}${path}`, options);
    return JSON.parse(await response.body.text());
  }

  async get(): Promise<unknown> {
    return JSON.parse(await (await request(this.url, { dispatcher: this.#agent })).body.text());
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }
}

/** One call on the daemon's socket, on a connection of its own. */
export function socketCall(path: string, name: string, args: object = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const chunks: Buffer[] = [];
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (chunk[chunk.length - 1] !== 10) return;
      socket.destroy();
      resolve(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    });
    socket.write(`${JSON.stringify({ method: "call", name, args })}\n`);
  });
}

/** `cua-driver serve` with nothing set but what keeps it quiet, on a display that is there. */
export class PlainDaemon {
  private constructor(
    readonly socket: string,
    private readonly child: ChildProcess,
  ) {}

  /** Resolves once it answers. */
  static async start(executable: string, socket: string, display: string): Promise<PlainDaemon> {
    const args = ["serve", "--socket", socket, "--pid-file", `${socket}.pid`];
    const quiet = { CUA_DRIVER_RS_TELEMETRY_ENABLED: "0", CUA_DRIVER_RS_UPDATE_CHECK: "0" };
    const child = spawn(executable, [...args, "--dangerously-bypass-approvals", "--no-overlay"], {
      env: { ...process.env, ...quiet, DISPLAY: display },
      stdio: "ignore",
    });
    const daemon = new PlainDaemon(socket, child);
    const late = performance.now() + 10_000;
    while (!(await socketCall(socket, "get_screen_size").then(Boolean, () => false))) {
      if (performance.now() > late || child.exitCode !== null) throw new Error("cua-driver serve doesn't answer");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return daemon;
  }

  async stop(): Promise<void> {
    const gone = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await gone;
  }
}

/** An MCP server over stdio, asked one request after the other. */
export class StdioMcp {
  readonly #waiting = new Map<number, (answer: unknown) => void>();
  readonly #child: ChildProcess;
  #id = 0;

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    createInterface({ input: this.#child.stdout as NonNullable<ChildProcess["stdout"]> }).on("line", (line) => {
      const answer = JSON.parse(line) as { id: number };
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
  }

  static async open(command: string, args: readonly string[]): Promise<StdioMcp> {
    const mcp = new StdioMcp(command, args);
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bench", version: "1" } };
    await mcp.ask("initialize", params);
    return mcp;
  }

  ask(method: string, params: object = {}): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return answered;
  }

  async close(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.stdin?.end();
    this.#child.kill();
    await gone;
  }
}

/** A program that prints the port it listens on as its first line. */
export async function startServer(
  script: string,
  args: readonly string[],
): Promise<{ url: string; close(): Promise<void> }> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(child, "exit");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return {
    url: `http://127.0.0.1:${Number(line)}/`,
    async close() {
      child.kill();
      await gone;
    },
  };
}
