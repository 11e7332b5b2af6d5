import { spawnSync } from "node:child_process";
import type { Account } from "./users.js";

/**
 * What keeps the processes of a computer together. `pid`: a PID namespace made as root. `user`: a PID namespace inside a user
 * namespace, which needs no root. `none`: no namespace; the guardian looks for every descendant.
 */
export const ISOLATIONS = ["pid", "user", "none"] as const;
export type Isolation = (typeof ISOLATIONS)[number];

const PROBE_MS = 3000;

/** The strongest isolation that this machine permits. It costs 3 to 10 ms. */
export function bestIsolation(account: Account): Isolation {
  const asRoot = process.getuid?.() === 0;
  return ISOLATIONS.find((isolation) => permitted(isolation, asRoot ? account : undefined, asRoot)) ?? "none";
}

function permitted(isolation: Isolation, becomes: Account | undefined, asRoot: boolean): boolean {
  if (isolation === "none") return true;
  if (isolation === "pid" && !asRoot) return false;
  const become = isolation === "user" && becomes ? becoming(becomes) : [];
  const [file = "", ...args] = [...become, ...namespace(isolation), "true"];
  return spawnSync(file, args, { stdio: "ignore", timeout: PROBE_MS }).status === 0;
}

/**
 * The command that runs `command` as the account (when this process is root) with the isolation. Its first process is a tini
 * whose pid is ours after an exec. It passes signals on, and when it dies, even of SIGKILL, `command` gets a SIGTERM:
 * unshare blocks SIGTERM and SIGINT, and has to be told by the kernel to die with its parent; a change of user clears what
 * unshare's own `--kill-child` asks the kernel for, so setpriv asks again.
 */
export function isolated(isolation: Isolation, account: Account, command: readonly string[]): string[] {
  const become = process.getuid?.() === 0 ? becoming(account) : [];
  const dieWithParent = ["setpriv", "--pdeathsig", "KILL", "--"];
  const stopWithParent = ["--pdeathsig", "TERM", "--"];
  switch (isolation) {
    case "pid":
      return [
        ...["tini", "-s", "-g", "--", ...dieWithParent, ...namespace("pid")],
        ...[...become.slice(0, -1), ...stopWithParent, "tini", "-s", "--", ...command],
      ];
    case "user":
      return [
        ...[...become, "tini", "-s", "-g", "--", ...dieWithParent, ...namespace("user")],
        ...["tini", "-s", "--", ...command],
      ];
    case "none":
      // Two of them: orphans still come to the inner one when the outer one, whose pid everybody knows, is killed.
      return [
        ...[...become, "tini", "-s", "--", "setpriv", ...stopWithParent, "tini", "-s", "--"],
        ...["setpriv", ...stopWithParent, ...command],
      ];
  }
}

/** Ends with `--`: what follows is the command. */
function becoming(account: Account): string[] {
  const ids = ["--reuid", String(account.uid), "--regid", String(account.gid)];
  return ["setpriv", ...ids, "--init-groups", "--inh-caps=-all", "--"];
}

function namespace(isolation: "pid" | "user"): string[] {
  return isolation === "pid"
    ? ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    : ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child=TERM", "--mount-proc"];
}
