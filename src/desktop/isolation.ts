import { spawnSync } from "node:child_process";
import type { Account } from "./users.js";

/**
 * What keeps the processes of a computer together. `pid`: PID namespaces made as root. `user`: PID namespaces inside user
 * namespaces, which need no root. `none`: no namespace; the guardian looks for every descendant, and a program that stops the
 * guardian keeps the computer from being stopped.
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
  const [file = "", ...args] = [...become, ...OUTER[isolation], ...INNER[isolation], "true"];
  return spawnSync(file, args, { stdio: "ignore", timeout: PROBE_MS }).status === 0;
}

/** The computer that a chain of processes is put around. */
export interface Isolated {
  /** The guardian, which becomes the computer's second process and stops it. */
  readonly command: readonly string[];
  readonly runtimeDir: string;
  readonly lock: string;
  /** What removes, as the session user, what the guardian left behind; it gets the runtime folder as an argument. */
  readonly cleanUp: readonly string[];
}

/** The guardian ends a computer within two seconds. One that has not by then is in no state to. */
const GUARDIAN_S = 3;
const CLEAN_UP_S = 1.5;

/**
 * What waits outside of the computer's namespace, where no program of the computer can signal or trace it, in a namespace of
 * its own that holds nothing else (it is its second process; without that check a slip would kill every process of the
 * machine). When the computer ended, by itself or because `timeout` killed it, all that is left of it is killed, and what a
 * guardian that could not clean up left is removed with no more rights than the computer had.
 *
 * 4 to 8 are the locks of the start: no program of the computer can reach them and let go of them. `timeout` handles HUP and
 * QUIT, which its child would then die of again.
 */
const AROUND = `[ $$ -eq 2 ] || exit 70
trap : TERM INT
dir=$1 lock=$2 become=$3 program=$4 file=$5
shift 5
timeout --foreground -k ${GUARDIAN_S} 0 env --ignore-signal=HUP --ignore-signal=QUIT "$@" 4<&- 5<&- 6<&- 7<&- 8>&-
status=$?
while kill -s KILL -- -1 2>/dev/null; do sleep 0.01; done
if [ "$status" -ne 0 ] && [ -n "$(ls -AU -- "$dir" 2>/dev/null | head -c 1)" ]; then
  timeout --foreground -s KILL ${CLEAN_UP_S} $become "$program" "$file" "$dir" 4<&- 5<&- 6<&- 7<&- 8>&- 9<&-
fi
rmdir -- "$dir" 2>/dev/null && rm -f -- "$lock"
exit "$status"`;

/**
 * The command that runs a computer as the account (when this process is root) with the isolation. Its first process is a tini
 * whose pid is ours after an exec. It passes signals on, and when it dies, even of SIGKILL, the computer gets a SIGTERM:
 * unshare blocks SIGTERM and SIGINT, and has to be told by the kernel to die with its parent; a change of user clears what
 * unshare's own `--kill-child` asks the kernel for, so setpriv asks again.
 *
 * Of namespaces there are two, one in the other: a program of the computer may stop or trace all that is in the inner one, and
 * what ends the computer then is in the outer one.
 */
export function isolated(isolation: Isolation, account: Account, computer: Isolated): string[] {
  const asRoot = process.getuid?.() === 0;
  const become = asRoot ? becoming(account) : [];
  const stopWithParent = ["--pdeathsig", "TERM", "--"];
  if (isolation === "none") {
    // Two of them: orphans still come to the inner one when the outer one, whose pid everybody knows, is killed.
    return [
      ...[...become, "tini", "-s", "--", "setpriv", ...stopWithParent, "tini", "-s", "--"],
      ...["setpriv", ...stopWithParent, ...computer.command],
    ];
  }
  const first = isolation === "user" ? become : [];
  const last = isolation === "pid" ? [...become.slice(0, -1), "--pdeathsig", "KILL", "--"] : [];
  const { runtimeDir, lock, cleanUp } = computer;
  const around = ["sh", "-c", AROUND, "sh", runtimeDir, lock, isolation === "pid" ? become.join(" ") : "", ...cleanUp];
  return [
    ...[...first, "tini", "-s", "-g", "--", "setpriv", "--pdeathsig", "KILL", "--", ...OUTER[isolation]],
    ...["tini", "-s", "-g", "--", ...around, ...INNER[isolation], ...last, "tini", "-s", "--", ...computer.command],
  ];
}

/** Ends with `--`: what follows is the command. No word of it needs to be quoted. */
function becoming(account: Account): string[] {
  const ids = ["--reuid", String(account.uid), "--regid", String(account.gid)];
  return ["setpriv", ...ids, "--init-groups", "--inh-caps=-all", "--"];
}

/** What waits in the outer namespace is told to stop when what is around it dies. */
const OUTER = {
  pid: ["unshare", "--pid", "--fork", "--kill-child=TERM"],
  user: ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child=TERM"],
} as const;
const INNER = {
  pid: ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"],
  user: ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"],
} as const;
