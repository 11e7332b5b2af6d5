import type { ChildProcess } from "node:child_process";
import { messageOf } from "../errors.js";
import { isErrno } from "./trees.js";

/** Resolves when a child has ended or could not be started, with how, in words. */
export function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(words(child.exitCode, child.signalCode));
    child.once("error", (error) => resolve(messageOf(error)));
    child.once("exit", (code, signal) => resolve(words(code, signal)));
  });
}

/** The same for a child that `signal` kills: it is still waited for then. */
export async function endUnder(signal: AbortSignal, child: ChildProcess): Promise<string> {
  const kill = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    return await endOf(child);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

/** Signals the process group of a child that was started `detached`. One that is gone is fine. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (thrown) {
    // ESRCH: it is gone. EPERM: what is left of it became another user.
    if (!isErrno(thrown, "ESRCH", "EPERM")) throw thrown;
  }
}

export function killGroup(child: ChildProcess): void {
  signalGroup(child, "SIGKILL");
}

function words(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `exit code ${code}` : `ended by ${signal}`;
}
