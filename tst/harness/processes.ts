import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface ProcessInfo {
  pid: number;
  command: string;
  state: string;
}

/** Every process whose environment or command line holds `text`, as the kernel lists them now; zombies included. */
export function processesWith(text: string): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const environment = readFileSync(`/proc/${name}/environ`, "utf8");
      if (!command.includes(text) && !environment.includes(text)) continue;
      const state = /^State:\s+(\S)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1] ?? "?";
      found.push({ pid, command, state });
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}

/** What a computer left behind: its processes, the sockets in its runtime folder, its X lock and X socket. */
export function remains({ runDir, display }: { runDir: string; display: string }): string[] {
  const number = display.slice(1);
  const socket = `/tmp/.X11-unix/X${number}`;
  // Where somebody listens and no process of the computer is left, the number is another X server's by now.
  const isTaken = readFileSync("/proc/net/unix", "utf8").includes(` ${socket}\n`);
  const locks = isTaken ? [] : [`/tmp/.X${number}-lock`, socket].filter((path) => existsSync(path));
  const files = existsSync(runDir)
    ? readdirSync(runDir, { recursive: true }).map((file) => join(runDir, String(file)))
    : [];
  return [...processesWith(runDir).map(({ pid, command }) => `process ${pid}: ${command}`), ...locks, ...files];
}

/** The children of a process that runs now. */
export function childrenOf(parent: number): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${Number(name)}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent ? [Number(name)] : [];
    } catch {
      // No process, or one that ended while we looked.
      return [];
    }
  });
}
