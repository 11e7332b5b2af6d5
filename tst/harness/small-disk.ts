import { isRoot } from "./desktop.js";

/** Mounting is for root, and for whoever has a user namespace to be it in. */
const UNSHARE = isRoot ? ["unshare"] : ["unshare", "--user", "--map-current-user", "--keep-caps"];
const SCRIPT = 'mount -t tmpfs -o "size=$1m,mode=755" tmpfs "$2" && cd "$2" && shift 2 && exec "$@"';

/**
 * A command line that runs `command` with a disk of so many MiB at `folder`, standing in it. Nobody else sees what is on that
 * disk, and it is gone with the last process of the command.
 */
export function onSmallDisk(mib: number, folder: string, command: readonly string[]): [string, ...string[]] {
  const [unshare = "", ...options] = UNSHARE;
  return [unshare, ...options, "--mount", "--", "sh", "-c", SCRIPT, "sh", String(mib), folder, ...command];
}
