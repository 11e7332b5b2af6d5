import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { ServerHandoff } from "./handoff.js";

const GIVE_UP_MS = 1500;
const PAUSE_MS = 5;
const ANSWER_MS = 100;

/**
 * Kills all that is left of a computer but this process, the guardian, and resolves when it is gone: in a namespace of its own
 * all that there is, elsewhere what is found.
 */
export async function killRemains({ isolation, runtimeDir }: ServerHandoff, subreaper: number): Promise<void> {
  // Without the second condition a slip would kill every process of the user.
  const isAlone = isolation !== "none" && process.ppid === 1;
  const until = Date.now() + GIVE_UP_MS;
  for (;;) {
    const remains = isAlone ? [-1] : remainsOf(readProcesses(), subreaper, runtimeDir);
    const killed = remains.filter((pid) => kill(pid));
    if ((isAlone ? killed : remains).length === 0 || Date.now() > until) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** False when there is nobody to kill. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** As `/proc/PID/environ` has it; empty for a process that this user can't look into. */
  readonly environment: string;
}

/**
 * Which of `processes` belong to the computer: descendants of the subreaper, to which every orphan of the computer comes, and
 * whatever was started with the computer's runtime folder, should the subreaper itself be gone.
 */
export function remainsOf(processes: readonly Process[], subreaper: number, runtimeDir: string): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of processes) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  // The subreaper died when this process has another parent; its pid may be somebody else's by now.
  const found = new Set<number>([process.pid]);
  const queue = process.ppid === subreaper ? [subreaper, process.pid] : [process.pid];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    for (const child of children.get(pid) ?? []) {
      if (found.has(child)) continue;
      found.add(child);
      queue.push(child);
    }
  }
  const mark = `\0XDG_RUNTIME_DIR=${runtimeDir}\0`;
  for (const { pid, environment } of processes) {
    if (pid !== subreaper && `\0${environment}`.includes(mark)) found.add(pid);
  }
  found.delete(process.pid);
  return [...found];
}

/** Zombies are left out: they only wait to be reaped. */
function readProcesses(): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    const status = readProc(name, "stat");
    // The command's name is in parentheses, and may hold any character.
    const [state, parent] = status.slice(status.lastIndexOf(")") + 2).split(" ");
    if (parent === undefined || state === "Z" || state === "X") return [];
    return [{ pid, parent: Number(parent), environment: readProc(name, "environ") }];
  });
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(join("/proc", pid, file), "utf8");
  } catch {
    return "";
  }
}

/** In the runtime folder: the paths elsewhere that the guardian is to remove, one a line, should it be killed itself. */
const NAMED = "removes";

/** Keeps a path for `namedPaths`. It is no secret and no promise: every program of the computer can change it. */
export function keepNamed(runtimeDir: string, path: string): void {
  try {
    appendFileSync(join(runtimeDir, NAMED), `${path}\n`, { mode: 0o600 });
  } catch {
    // The folder is the computer's: a program of it may have removed it.
  }
}

export function namedPaths(runtimeDir: string): string[] {
  try {
    return readFileSync(join(runtimeDir, NAMED), "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}

/**
 * Removes what the server named, and empties the runtime folder. What can't be removed doesn't keep the rest. Called when
 * nothing of the computer runs any more: a named socket on which somebody answers is that of another X server by now, which
 * took the display's number when ours was gone.
 */
export async function removeRemains(runtimeDir: string, paths: Iterable<string>): Promise<void> {
  for (const path of paths) {
    if (!(await isAnswered(path))) remove(path);
  }
  for (const path of contents(runtimeDir)) remove(path);
}

async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
      // One that is too busy to take a connection is there.
      socket.setTimeout(ANSWER_MS, () => resolve(true));
    });
  } finally {
    socket.destroy();
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Somebody else's file.
  }
}

function contents(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}
