import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SetupError } from "../errors.js";
import { lockOf } from "./handoff.js";
import type { Account } from "./users.js";

/** Longer than any socket's name in the runtime folder; a Unix socket's path has 107 bytes at most. */
const MAX_RUNTIME_PATH = 107 - "/at-spi/bus_99999".length;

const ANY_PORT = "any-";
const FORGOTTEN_MS = 10 * 60 * 1000;

/**
 * The runtime folder of the computer on a port: `/run/agentenv/<port>` as root, else below XDG_RUNTIME_DIR or the temporary
 * folder. With port 0 (any free one) it is named after this process.
 */
export function runtimeFolder(port: number): string {
  const uid = process.getuid?.() ?? 0;
  const own = process.env.XDG_RUNTIME_DIR;
  const base = uid === 0 ? "/run/agentenv" : own ? join(own, "agentenv") : join(tmpdir(), `agentenv-${uid}`);
  return join(base, port === 0 ? `${ANY_PORT}${process.pid}` : String(port));
}

/**
 * Removes what computers on any free port left: their names are not used again. A start makes its folder some time before it
 * holds the lock, so what is young is left alone.
 */
function removeForgotten(base: string): void {
  const before = Date.now() - FORGOTTEN_MS;
  for (const name of readdirSync(base)) {
    if (!name.startsWith(ANY_PORT) || name.endsWith(".lock")) continue;
    const folder = join(base, name);
    const there = lstatSync(folder, { throwIfNoEntry: false });
    if (there === undefined || there.mtimeMs > before) continue;
    // Unlike our own, this rm can't be led elsewhere by an owner who swaps folders for links.
    const remove = ["rm", "-rf", "--", folder, lockOf(folder)];
    spawnSync("flock", ["-n", lockOf(folder), ...remove], { stdio: "ignore" });
  }
}

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
  mkdirSync(base, { recursive: true, mode: uid === 0 ? 0o755 : 0o700 });
  const parent = lstatSync(base);
  if (!parent.isDirectory() || parent.uid !== uid || (parent.mode & 0o022) !== 0) {
    throw new SetupError(`the folder of runtime folders is not safe to use: ${base}`, {
      hint: `it has to be a folder that user ${uid} owns and nobody else can write to; remove it or correct it`,
    });
  }
  if (uid === 0) chmodSync(base, 0o755);
  removeForgotten(base);

  // Root never deletes in a folder whose owner may swap what lies in it: only an empty one is replaced.
  const there = lstatSync(runtimeDir, { throwIfNoEntry: false });
  if (there !== undefined && (!there.isDirectory() || there.uid !== account.uid)) {
    try {
      rmdirSync(runtimeDir);
    } catch (cause) {
      throw new SetupError(`the runtime folder is not ${account.name}'s: ${runtimeDir}`, {
        hint: `look at it and remove it: rm -r ${runtimeDir}`,
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
    throw new SetupError(`${folder} is not a folder`, { hint: `remove it: rm ${folder}` });
  }
  if (there.uid !== 0) chownSync(folder, 0, 0);
  if ((there.mode & 0o7777) !== 0o1777) chmodSync(folder, 0o1777);
}
