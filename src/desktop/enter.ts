import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SetupError } from "../errors.js";
import { packageRoot } from "../package-root.js";
import { makeRuntimeFolder, makeX11Folder } from "./folders.js";
import { type Handoff, lockOf } from "./handoff.js";
import { bestIsolation, type Isolation, isolated } from "./isolation.js";
import { ENTRY_PROGRAMS, requirePrograms } from "./programs.js";
import { stage } from "./staging.js";
import { type Account, accountOf, currentAccount, loginEnvironment } from "./users.js";

export interface EnterOptions {
  /** Whose the computer is. As root that user has to exist and not be root; otherwise it is who we are already. */
  readonly user: string | undefined;
  /** Made here, see `runtimeFolder`. */
  readonly runtimeDir: string;
  readonly dataDir: string;
  /** The server's JavaScript file, in the program's folder or in one of `folders`. It calls `serverSide()` first. */
  readonly server: string;
  /** Node's options for the server. */
  readonly nodeOptions?: readonly string[];
  /** Folders outside the program's that the session user has to read; as root they are copied. */
  readonly folders?: readonly string[];
  /** Added to the server's environment, which programs of the computer can read: nothing secret. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What the server gets as `payload`, as JSON. `locate` says where a path of the program or of `folders` is for the server. */
  payload(locate: (path: string) => string): unknown;
  /** For tests. Default: the strongest one that the machine permits. */
  readonly isolation?: Isolation;
}

/** What a terminal looks like, for a log that people read. */
const TERMINAL_VARIABLES = ["TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TZ"];

/** How long a lock may be held by who only looks whether a computer holds it, or removes what one left. */
const LOOKED_AT_S = 0.5;

/**
 * GUARDIAN_PROC_FD is 9. The locks are let go of when the last process of the chain ends. Whoever removes the lock's file and
 * the folder holds the lock meanwhile: it counts only where it is the file's that is there. tini passes every signal on, and
 * unshare would be stopped or killed by those that it doesn't block, under the feet of a computer that is stopping.
 */
const OPEN_AND_EXEC = `umask 077
cd /
trap '' HUP QUIT TSTP USR1 USR2
exec 9</proc 8<&- 0<>"$2" 7<"$4" 6<"$5" 5<"$6" 4<"$7" || exit 1
rm -f -- "$2"
until [ "$1" -ef /proc/self/fd/8 ]; do
  exec 8>>"$1"
  flock -w ${LOOKED_AT_S} 8 || { echo "$3" >&2; exit 1; }
done
[ -d "$8" ] || { mkdir -m 700 -- "$8" && chown "$9" -- "$8"; } || exit 1
flock -s 7 && flock -s 6 && flock -s 5 && flock -s 4 || exit 1
umask 022
shift 9
exec "$@"`;

/**
 * Turns this process into the computer's: as root it prepares what needs root and becomes the session user for good; the
 * guardian and the server follow as its children, under this process's pid. What a person set up wrong is thrown as a
 * SetupError before; after that it doesn't return. The exit status is the server's, 0 after a stop that was asked for; asked for
 * before the server said that it is ready, it is what a shell gives to the signal.
 */
export function enterSession(options: EnterOptions): never {
  requirePrograms(ENTRY_PROGRAMS);
  const asRoot = process.getuid?.() === 0;
  const account = asRoot ? accountOf(options.user ?? "agent") : currentAccount();
  if (options.user !== undefined && options.user !== account.name) {
    throw new SetupError(`only root can start a computer for ${options.user}; this is ${account.name}`, {
      hint: `start it as ${options.user} or as root, or leave --user out`,
    });
  }
  const lock = lockOf(options.runtimeDir);
  const taken = `another computer lives in ${options.runtimeDir}`;
  if (isLocked(lock)) throw new SetupError(taken, { hint: "stop it, or choose another port: --port N" });
  if (asRoot) makeX11Folder();

  // Only root's copy of Node keeps the server's memory from the programs of the computer: whoever starts a computer as the
  // session user itself gives them the tokens that callers use.
  const { node, inUse, locate } = asRoot
    ? stage({ ...options, programDir: packageRoot, gid: account.gid })
    : { node: process.execPath, inUse: [], locate: (path: string) => resolve(path) };
  const [guardian, cleanUp] = ["guardian.js", "clean-up.js"].map((name) =>
    locate(fileURLToPath(new URL(name, import.meta.url))),
  ) as [string, string];
  const server = locate(options.server);
  if (asRoot) checkReadable(account, node, [guardian, server]);
  const isolation = options.isolation ?? bestIsolation(account);

  const environment = { ...loginEnvironment(account), ...terminalEnvironment() };
  const handoff: Handoff = {
    server: ["--disable-sigusr1", ...(options.nodeOptions ?? []), server],
    environment: { ...environment, XDG_RUNTIME_DIR: options.runtimeDir, ...options.environment },
    home: account.home,
    forServer: { runtimeDir: options.runtimeDir, isolation, payload: options.payload(locate) },
  };
  // Late: a start that is refused leaves nothing.
  makeRuntimeFolder(options.runtimeDir, account);
  const file = `${options.runtimeDir}.${randomBytes(8).toString("hex")}`;
  writeFileSync(file, JSON.stringify(handoff), { mode: 0o600, flag: "wx" });
  const kept = [0, 1, 2, 3].map((index) => inUse[index] ?? "/");
  const chain = isolated(isolation, account, {
    command: [node, "--disable-sigusr1", guardian],
    runtimeDir: options.runtimeDir,
    lock,
    cleanUp: [node, cleanUp],
  });
  const folder = [options.runtimeDir, `${account.uid}:${account.gid}`];
  const opening = ["sh", "-c", OPEN_AND_EXEC, "sh", lock, file, `agentenv: ${taken}`, ...kept, ...folder];
  // Without the runtime folder: what has it in its environment belongs to the computer, and the chain outlives that.
  execute("/bin/sh", [...opening, ...chain], environment);
}

function execute(file: string, args: readonly string[], environment: Record<string, string>): never {
  if (process.execve === undefined) {
    throw new SetupError(`this Node (${process.version}) can't replace its own process`, {
      hint: "use Node 22.19 or newer",
    });
  }
  return process.execve(file, args, environment);
}

/** Whether a computer that runs holds the lock. The start itself takes it later, in the chain that keeps it. */
function isLocked(lock: string): boolean {
  if (!existsSync(lock)) return false;
  const file = openSync(lock, "a", 0o600);
  try {
    const take = ["-w", String(LOOKED_AT_S), "3"];
    return spawnSync("flock", take, { stdio: ["ignore", "ignore", "ignore", file] }).status !== 0;
  } finally {
    closeSync(file);
  }
}

/** A data folder inside one that the session user can't enter would fail later, with less to say. */
function checkReadable(account: Account, node: string, files: readonly string[]): void {
  const test = ["test", "-x", node, ...files.flatMap((file) => ["-a", "-r", file])];
  const ids = ["--reuid", String(account.uid), "--regid", String(account.gid), "--init-groups"];
  if (spawnSync("setpriv", [...ids, "--", ...test], { stdio: "ignore" }).status === 0) return;
  throw new SetupError(`the session user ${account.name} can't read ${dirname(dirname(node))}`, {
    hint: "set AGENTENV_DATA to a folder that every user can enter",
  });
}

function terminalEnvironment(): Record<string, string> {
  return Object.fromEntries(
    TERMINAL_VARIABLES.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
