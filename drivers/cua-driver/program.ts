import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { SetupError } from "../../src/errors.js";

/** How a program ended and the last 64 KiB of each of its outputs. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly stdio?: StdioOptions;
  readonly signal?: AbortSignal | undefined;
  /** Killed after this many milliseconds, which is a SetupError. */
  readonly timeoutMs: number;
}

/**
 * Runs a program to its end in a process group of its own. Aborted or out of time, the whole group is killed and the
 * promise rejects once the program is reaped; any other end, a failing one too, resolves. Rejects where it can't be started.
 */
export async function runProgram(file: string, args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  options.signal?.throwIfAborted();
  const child = startGroup(file, args, options);
  const stdout = tail(child.stdout);
  const stderr = tail(child.stderr);
  let killedFor: unknown;
  const kill = (reason: unknown) => {
    killedFor ??= reason;
    killGroup(child);
  };
  const onAbort = () => kill(options.signal?.reason);
  const timer = setTimeout(
    kill,
    options.timeoutMs,
    new SetupError(`${file} took more than ${options.timeoutMs / 1000} s`),
  );
  options.signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const [code, signal] = await ended(child);
    if (killedFor !== undefined) throw killedFor;
    return { code, signal, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
  }
}

/** Starts a program as the head of a process group of its own. */
export function startGroup(
  file: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; stdio?: StdioOptions },
): ChildProcess {
  return spawn(file, [...args], {
    ...(options.env ? { env: options.env } : {}),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: options.stdio ?? ["ignore", "pipe", "pipe"],
    detached: true,
  });
}

/** Kills the group that `startGroup` made; does nothing when it is gone. */
export function killGroup(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Nobody of the group is left.
  }
}

/** Resolves once the program is reaped and its outputs are read; rejects when it couldn't be started. */
export function ended(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve([code, signal]));
  });
}

const TAIL_BYTES = 64 * 1024;

/** Reads an output to its end and keeps the last of it. */
export function tail(stream: NodeJS.ReadableStream | null): () => string {
  let kept = "";
  stream?.setEncoding("utf8").on("data", (text: string) => {
    kept = (kept + text).slice(-TAIL_BYTES);
  });
  return () => kept;
}
