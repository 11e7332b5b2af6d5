import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import { shellWord } from "../shell-word.js";
import type { Account } from "./users.js";

/** Longer than any socket's name in the runtime folder; a Unix socket's path has 107 bytes at most. */
const MAX_RUNTIME_PATH = 107 - "/at-spi/bus_99999".length;

const REMOVE_S = 2;

/**
 * The runtime folder of the computer on a port: `/run/agentenv/<port>` as root, else below XDG_RUNTIME_DIR or the temporary
 * folder. With port 0 (any free one) it is named after this process.
 */
export function runtimeFolder(port: number): string {
  const uid = process.getuid?.() ?? 0;
  const own = process.env.XDG_RUNTIME_DIR;
  const base = uid === 0 ? "/run/agentenv" : own ? join(own, "agentenv") : join(tmpdir(), `agentenv-${uid}`);
  return join(base, port === 0 ? `any-${process.pid}` : String(port));
}

/**
 * Removes the folders and the locks of computers that are gone: those whose lock nobody holds. A start that is about to take
 * one of these locks notices that the file is not there any more, and makes both anew.
 */
export function removeUnused(base: string, own: string): void {
  const names = readdirSync(base).flatMap((name) => /^((?:any-)?\d+)(?:\.lock)?$/.exec(name)?.[1] ?? []);
  const others = new Set(names.filter((name) => join(base, name) !== own));
  if (others.size === 0) return;
  // What can't be removed within this time is left to the next start.
  const remove = ["-s", "KILL", String(REMOVE_S), "sh", "-c", REMOVE_UNLOCKED, "sh", ...others];
  spawnSync("timeout", remove, { cwd: base, stdio: "ignore" });
}

/** Unlike Node's, this rm can't be led elsewhere by an owner who swaps folders for links. */
const REMOVE_UNLOCKED = `umask 077
for name; do
  (exec 9>>"$name.lock" && flock -n 9 && [ "$name.lock" -ef /proc/self/fd/9 ] && rm -rf -- "$name" "$name.lock")
done`;

/**
 * Makes the runtime folder, 0700 and the session user's. Whatever lies there that this can't be made of is refused with a
 * SetupError: a symbolic link, another user's folder.
 */
export function makeRuntimeFolder(runtimeDir: string, account: Account): void {
  if (Buffer.byteLength(runtimeDir) > MAX_RUNTIME_PATH) {
    throw new SetupError(`the path of the runtime folder is too long for sockets: ${runtimeDir}`, {
      hint: "set XDG_RUNTIME_DIR to a shorter path",
    });
  }
  const uid = process.getuid?.() ?? 0;
  const base = join(runtimeDir, "..");
  try {
    makeFolder(base, uid === 0 ? 0o755 : 0o700);
  } catch (cause) {
    throw new SetupError(`the folder of runtime folders can't be made: ${messageOf(cause)}`, {
      hint: "set XDG_RUNTIME_DIR to a folder that can be written, or leave it out",
      cause,
    });
  }
  const parent = lstatSync(base);
  if (!parent.isDirectory() || parent.uid !== uid || (parent.mode & 0o022) !== 0) {
    throw new SetupError(`the folder of runtime folders is not safe to use: ${base}`, {
      hint: `it has to be a folder that user ${uid} owns and nobody else can write to; remove it or correct it`,
    });
  }
  if (uid === 0) chmodSync(base, 0o755);
  removeUnused(base, runtimeDir);

  // Root never deletes in a folder whose owner may swap what lies in it: only an empty one is replaced.
  const there = lstatSync(runtimeDir, { throwIfNoEntry: false });
  if (there !== undefined && (!there.isDirectory() || there.uid !== account.uid)) {
    try {
      rmdirSync(runtimeDir);
    } catch (cause) {
      throw new SetupError(`the runtime folder is not ${account.name}'s: ${runtimeDir}`, {
        hint: `look at it and remove it: rm -r ${shellWord(runtimeDir)}`,
        cause,
      });
    }
  }
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
  if (uid === 0) chownSync(runtimeDir, account.uid, account.gid);
  else chmodSync(runtimeDir, 0o700);
}

/** The folder of X sockets, which only root can make as X servers want it: root's, 1777. */
export function makeX11Folder(folder = "/tmp/.X11-unix"): void {
  mkdirSync(folder, { recursive: true });
  const there = lstatSync(folder);
  if (!there.isDirectory()) {
    throw new SetupError(`${folder} is not a folder`, { hint: `remove it: rm ${shellWord(folder)}` });
  }
  if (there.uid !== 0) chownSync(folder, 0, 0);
  if ((there.mode & 0o7777) !== 0o1777) chmodSync(folder, 0o1777);
}
