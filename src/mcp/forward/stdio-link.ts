import { type ChildProcess, spawn } from "node:child_process";
import type { FastifyBaseLogger } from "fastify";
import { type LinkEvents, NotSent, type UpstreamLink } from "./link.js";

/** A message longer than this ends the connection, so that a server gone mad doesn't fill the memory. */
const MAX_MESSAGE_BYTES = 256 << 20;
/** While more than this waits for a server that takes nothing, nothing is added to it. */
const MAX_WAITING_BYTES = 64 << 20;
/** How long a server may take to end by itself, once its input is closed and once it is asked to. */
const END_MS = 1_000;
/** What a server that has ended wrote last is read within this time; who else still holds its output is not listened to. */
const DRAIN_MS = 100;
/** What a server gets of our own environment: what programs need, and no secret. */
const INHERITED = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

export interface StdioOptions {
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly log?: Pick<FastifyBaseLogger, "debug"> | undefined;
  /** Gets what the server writes to its standard error, all of it by the end of `close`. */
  readonly said?: ((text: string) => void) | undefined;
}

/** An MCP server as a child process that speaks over its standard input and output, a message a line. */
export class StdioLink implements UpstreamLink {
  readonly relates = false;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #heard: Promise<void> = Promise.resolve();
  #pieces: Buffer[] = [];
  #bytes = 0;
  #gone: Error | undefined;

  constructor(
    { command: [file, ...args], env, cwd, log, said }: StdioOptions,
    private readonly events: LinkEvents,
  ) {
    const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
    this.#child = spawn(file, args, {
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own, so that what the server started can be ended with it.
      detached: true,
      env: { ...Object.fromEntries(inherited), ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#end(new Error(`${file} can't be started: ${error.message}`, { cause: error }));
        if (this.#child.pid === undefined) resolve();
      });
      this.#child.once("exit", (code, signal) => {
        this.#killGroup("SIGKILL");
        this.#end(new Error(`${file} ended with ${signal ?? `code ${code}`}`));
        resolve();
      });
    });
    this.#child.stdin?.on("error", () => {});
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log?.debug({ stderr: text.slice(0, 2_000) }, file);
      said?.(text);
    });
    if (said !== undefined) this.#heard = new Promise((resolve) => this.#child.once("close", () => resolve()));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: string): undefined {
    const { stdin } = this.#child;
    if (this.#gone !== undefined || stdin === null || !stdin.writable) {
      throw new NotSent("the server's process is gone", { cause: this.#gone });
    }
    if (stdin.writableLength > MAX_WAITING_BYTES) throw new NotSent("the server doesn't take what it was sent before");
    const line = /[\r\n]/.test(message) ? message.replaceAll(/[\r\n]+/g, " ") : message;
    // What the pipe doesn't hold waits here: a request is waited for by its answer alone.
    stdin.write(`${line}\n`);
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      this.#pieces.push(chunk.subarray(from, end));
      const line = (this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces))?.toString("utf8") ?? "";
      this.#pieces = [];
      this.#bytes = 0;
      from = end + 1;
      if (line.trim() !== "") this.events.message(line);
    }
    if (from === chunk.length) return;
    this.#pieces.push(chunk.subarray(from));
    this.#bytes += chunk.length - from;
    if (this.#bytes > MAX_MESSAGE_BYTES) {
      this.#pieces = [];
      this.#killGroup("SIGKILL");
    }
  }

  #end(reason: Error): void {
    if (this.#gone !== undefined) return;
    this.#gone = reason;
    this.events.closed(reason);
  }

  /** Closes the server's input, and kills its whole group if it doesn't end. */
  async close(): Promise<void> {
    this.#end(new Error("the connection was closed"));
    this.#child.stdin?.end();
    if (!(await isOver(this.#exited, END_MS))) {
      this.#killGroup("SIGTERM");
      if (!(await isOver(this.#exited, END_MS))) this.#killGroup("SIGKILL");
      await this.#exited;
    }
    await isOver(this.#heard, DRAIN_MS);
  }

  #killGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The whole group has ended.
    }
  }
}

/** Whether it is over within that time. */
async function isOver(what: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), ms);
  void what.then(() => resolve(true));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
