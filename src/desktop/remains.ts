import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ServerHandoff } from "./handoff.js";

const GIVE_UP_MS = 1500;
const PAUSE_MS = 5;

/**
 * Kills all that is left of a computer but this process, the guardian. In a namespace of its own the kernel does that, at
 * once; elsewhere it is looked for until there is none.
 */
export async function killRemains({ isolation, runtimeDir }: ServerHandoff, subreaper: number): Promise<void> {
  // Without the second condition a slip would kill every process of the user.
  if (isolation !== "none" && process.ppid === 1) {
    try {
      process.kill(-1, "SIGKILL");
    } catch {
      // There was nobody else.
    }
    return;
  }
  const until = Date.now() + GIVE_UP_MS;
  for (;;) {
    const remains = remainsOf(readProcesses(), subreaper, runtimeDir);
    if (remains.length === 0 || Date.now() > until) return;
    for (const pid of remains) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
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

/** Removes what the server named, and empties the runtime folder. What can't be removed doesn't keep the rest. */
export function removeRemains(runtimeDir: string, paths: Iterable<string>): void {
  for (const path of [...paths, ...contents(runtimeDir)]) {
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // Somebody else's file.
    }
  }
}

function contents(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}
