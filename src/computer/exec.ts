import type { ChildProcess } from "node:child_process";
import { stat } from "node:fs/promises";
import { constants } from "node:os";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { AgentEnvError, messageOf } from "../errors.js";
import { type ExecAnswer, type ExecRequest, MAX_EXEC_TIMEOUT_S } from "../protocol/computer.js";
import { settledWithin } from "./deadline.js";
import type { ComputerLog } from "./log.js";
import type { SessionUser } from "./session.js";
import type { ComputerSettings } from "./settings.js";

/** How many results are kept for a request that is repeated. */
const KEPT_RESULTS = 256;
/** How many commands may run at once. */
const MAX_RUNNING = 64;
/** How many programs that outlived their command may still hold its output open. */
const MAX_DRAINING = 256;
/** How long output is waited for once the command itself has ended. */
const DRAIN_MS = 1_000;
/** How long a killed command may take to be gone. */
const KILL_MS = 5_000;
/** Why a program can't be started that is the request's fault and not the machine's. */
const NOT_STARTABLE = new Set(["ENOENT", "EACCES", "ENOTDIR", "ENOEXEC", "E2BIG", "ELOOP", "ENAMETOOLONG", "EISDIR"]);

/** What a command came to. Outputs are kept as bytes, which are bounded, until they are answered. */
interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly truncated: boolean;
  readonly timedOut: boolean;
}

/**
 * Commands in the desktop session. A repeated request joins the command that runs, or answers one of the last results again,
 * and never starts it anew. Each command is a process group of its own and is killed with it at its timeout.
 */
export class Commands {
  readonly #running = new Map<string, Promise<CommandResult>>();
  readonly #finished = new Map<string, CommandResult>();
  readonly #children = new Set<ChildProcess>();
  readonly #draining = new Set<Readable>();
  readonly #outputs = new Set<CappedOutput>();
  #closed = false;

  constructor(
    private readonly user: SessionUser,
    private readonly settings: () => Readonly<ComputerSettings>,
    private readonly log: ComputerLog,
    private readonly drainMs = DRAIN_MS,
  ) {}

  /**
   * Runs a command and answers when it has ended. Throws `invalid_argument` for a command that can't be started,
   * `permission_denied` where the session user is root, and `limit_exceeded` where too many run.
   */
  async run(request: ExecRequest): Promise<ExecAnswer> {
    const { argv, request_id: id } = request;
    const timeoutS = request.timeout_s ?? this.settings().exec_timeout_s;
    if (argv.length === 0 || argv[0] === "") {
      throw new AgentEnvError("invalid_argument", "argv names no program", {
        hint: 'name a shell to use one: ["sh", "-c", "..."]',
      });
    }
    if (id === "") throw new AgentEnvError("invalid_argument", "request_id is empty");
    if (!(timeoutS > 0 && timeoutS <= MAX_EXEC_TIMEOUT_S)) {
      throw new AgentEnvError("invalid_argument", `timeout_s is above 0 and at most ${MAX_EXEC_TIMEOUT_S}`);
    }
    const finished = this.#finished.get(id);
    if (finished !== undefined) return described(finished);
    let running = this.#running.get(id);
    if (running === undefined) {
      this.#checkAllowed();
      running = this.#start(request, timeoutS * 1000);
      this.#running.set(id, running);
      const done = (result?: CommandResult) => {
        this.#running.delete(id);
        if (result !== undefined) this.#keep(id, result);
      };
      running.then(done, () => done());
    }
    return described(await running);
  }

  #checkAllowed(): void {
    if (this.user.uid === 0) {
      throw new AgentEnvError("permission_denied", "the session user is root, and no command runs as root", {
        hint: "start the computer with --user and an unprivileged user",
      });
    }
    if (this.#closed) throw new AgentEnvError("device_unavailable", "the computer is being stopped");
    if (this.#running.size >= MAX_RUNNING) {
      throw new AgentEnvError("limit_exceeded", `${MAX_RUNNING} commands run already`, {
        hint: "wait for one of them to end",
      });
    }
    if (this.#draining.size >= MAX_DRAINING) {
      throw new AgentEnvError(
        "limit_exceeded",
        `${MAX_DRAINING} background programs hold the output of ended commands`,
        {
          hint: "start programs that stay with their output sent elsewhere: ... >/dev/null 2>&1 &",
        },
      );
    }
  }

  #keep(id: string, result: CommandResult): void {
    this.#finished.set(id, result);
    const [oldest] = this.#finished.keys();
    if (this.#finished.size > KEPT_RESULTS && oldest !== undefined) this.#finished.delete(oldest);
  }

  async #start(request: ExecRequest, timeoutMs: number): Promise<CommandResult> {
    const child = await this.#spawn(request);
    this.#children.add(child);
    // The computer may have been closed while the program was started.
    if (this.#closed) killGroup(child);
    const limit = this.settings().exec_output_bytes;
    const stdout = new CappedOutput(child.stdout, limit);
    const stderr = new CappedOutput(child.stderr, limit);
    this.#outputs.add(stdout).add(stderr);
    const ended = exited(child);
    const timedOut = !(await settledWithin(timeoutMs, ended));
    if (timedOut) {
      killGroup(child);
      await settledWithin(KILL_MS, ended);
    }
    this.#children.delete(child);
    // What stays in the background may hold the outputs open. They are read on, and discarded, so that it neither blocks on a
    // full pipe nor dies of a closed one.
    await settledWithin(this.drainMs, Promise.all([stdout.ended, stderr.ended]));
    for (const output of [stdout, stderr]) {
      output.stop();
      this.#outputs.delete(output);
      this.#drain(output);
    }
    return {
      exitCode: timedOut ? null : exitCodeOf(child),
      stdout: stdout.bytes(),
      stderr: stderr.bytes(),
      truncated: stdout.cut || stderr.cut,
      timedOut,
    };
  }

  async #spawn({ argv, cwd, env }: ExecRequest): Promise<ChildProcess> {
    const [program, ...args] = argv as [string, ...string[]];
    const folder = resolve(this.user.home, cwd ?? ".");
    if (!(await isFolder(folder))) {
      throw new AgentEnvError("invalid_argument", `cwd names no folder that is there: ${JSON.stringify(cwd ?? ".")}`);
    }
    const refused = (thrown: unknown) => notStarted(program, thrown);
    let child: ChildProcess;
    try {
      child = this.user.spawn(program, args, {
        cwd: folder,
        env: env ?? {},
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
    } catch (thrown) {
      // Node refuses some arguments before it tries, such as one with a NUL byte.
      throw refused(thrown);
    }
    await new Promise<void>((started, failed) => {
      child.once("spawn", started);
      child.once("error", (thrown) => failed(refused(thrown)));
    });
    // From now on only a failed kill is an error, and what matters is when it exits.
    child.on("error", (thrown) => this.log.warn({ err: thrown }, "a command's process reports an error"));
    return child;
  }

  #drain({ stream }: CappedOutput): void {
    if (stream === null || stream.readableEnded || stream.destroyed) return;
    this.#draining.add(stream);
    stream.once("close", () => this.#draining.delete(stream));
  }

  /** Kills the commands that run, with their groups, and lets go of the outputs. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const child of this.#children) killGroup(child);
    for (const { stream } of this.#outputs) stream?.destroy();
    await Promise.allSettled(this.#running.values());
    for (const stream of this.#draining) stream.destroy();
  }
}

/** An output of which the first bytes are kept and the rest is read and thrown away. */
class CappedOutput {
  readonly ended: Promise<void>;
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  #stopped = false;
  cut = false;

  constructor(
    readonly stream: Readable | null,
    limit: number,
  ) {
    this.ended = new Promise((resolve) => {
      if (stream === null) return resolve();
      stream.once("close", resolve);
      stream.on("error", () => {});
      stream.on("data", (chunk: Buffer) => {
        if (this.#stopped) return;
        const room = limit - this.#kept;
        if (chunk.length > room) this.cut = true;
        if (room <= 0) return;
        const kept = chunk.length > room ? Buffer.from(chunk.subarray(0, room)) : chunk;
        this.#chunks.push(kept);
        this.#kept += kept.length;
      });
    });
  }

  /** Keeps nothing of what still comes. */
  stop(): void {
    this.#stopped = true;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

function described(result: CommandResult): ExecAnswer {
  return {
    exit_code: result.exitCode,
    stdout: result.stdout.toString("utf8"),
    stderr: result.stderr.toString("utf8"),
    truncated: result.truncated,
    timed_out: result.timedOut,
  };
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** The refusal of a program that could not be started; nothing of it ran. */
function notStarted(program: string, thrown: unknown): AgentEnvError {
  const code = (thrown as NodeJS.ErrnoException).code ?? "";
  const fault = NOT_STARTABLE.has(code) || code.startsWith("ERR_INVALID_ARG") ? "invalid_argument" : "internal";
  return new AgentEnvError(fault, `${JSON.stringify(program)} can't be run: ${messageOf(thrown)}`, {
    applied: "no",
    cause: thrown,
  });
}

/** When the process itself has ended, whoever still holds its pipes. */
function exited(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });
}

function exitCodeOf({ exitCode, signalCode }: ChildProcess): number | null {
  return exitCode ?? (signalCode === null ? null : -constants.signals[signalCode]);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
