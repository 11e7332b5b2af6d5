import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, readlink, realpath, rename, unlink } from "node:fs/promises";
import { join, sep } from "node:path";
import { AgentEnvError } from "../errors.js";

/** A file under the home, by its path relative to it. */
export interface HomeFile {
  readonly path: string;
  readonly bytes: AsyncIterable<Buffer> | Iterable<Buffer>;
}

/** A file of the home that is there: its path relative to the home, and where it really lies. */
export interface FoundFile {
  readonly path: string;
  readonly real: string;
  readonly size: number;
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** A file that has arrived whole, beside its place. */
interface Staged {
  readonly path: string;
  readonly temporary: string;
}

/**
 * Writes files under a home. Each is written beside its place, and renamed into it once all of them have arrived whole, so
 * none is ever seen in part. Folders that lie outside the home are never written to, whatever links to them. Throws
 * `invalid_argument` for a path that leads outside or where no file can be.
 *
 * Every step goes through a folder that is held open, so a link that is put in place meanwhile leads nowhere else.
 */
export async function writeHomeFiles(home: string, files: AsyncIterable<HomeFile> | Iterable<HomeFile>): Promise<void> {
  const root = await realpath(home);
  const staged: Staged[] = [];
  try {
    for await (const file of files) staged.push(await stage(root, file));
    while (staged[0] !== undefined) {
      await settle(root, staged[0]);
      staged.shift();
    }
  } finally {
    for (const file of staged) await discard(root, file);
  }
}

function stage(root: string, { path, bytes }: HomeFile): Promise<Staged> {
  return inFolderOf(root, path, async (folder, name) => {
    const temporary = `.${name.slice(0, 60)}.${randomBytes(6).toString("hex")}.part`;
    const file = await asArgument(path, () =>
      open(within(folder, temporary), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o666),
    );
    try {
      for await (const chunk of bytes) await file.writeFile(chunk);
    } catch (thrown) {
      await unlink(within(folder, temporary)).catch(() => {});
      throw thrown;
    } finally {
      await file.close();
    }
    return { path, temporary };
  });
}

function settle(root: string, { path, temporary }: Staged): Promise<void> {
  return inFolderOf(root, path, (folder, name) =>
    asArgument(path, () => rename(within(folder, temporary), within(folder, name))),
  );
}

async function discard(root: string, { path, temporary }: Staged): Promise<void> {
  await inFolderOf(root, path, (folder) => unlink(within(folder, temporary))).catch(() => {});
}

/** Runs `step` with the folder that `path` lies in held open, making it where it is missing. */
async function inFolderOf<T>(
  root: string,
  path: string,
  step: (folder: FileHandle, name: string) => Promise<T>,
): Promise<T> {
  const parts = path.split("/");
  const name = parts.pop() ?? "";
  const folder = await asArgument(path, () => openFolder(root, parts, path));
  try {
    return await step(folder, name);
  } finally {
    await folder.close();
  }
}

/** Opens a folder below the root, making those that are missing. */
async function openFolder(root: string, parts: readonly string[], path: string): Promise<FileHandle> {
  let folder = await open(root, O_RDONLY | O_DIRECTORY);
  for (const part of parts) {
    const above = folder;
    try {
      folder = await openChild(above, part);
      const real = await readlink(`/proc/self/fd/${folder.fd}`);
      if (!isBelow(root, real)) {
        await folder.close();
        throw new AgentEnvError("invalid_argument", `${JSON.stringify(path)} leads out of the home`);
      }
    } finally {
      await above.close();
    }
  }
  return folder;
}

async function openChild(folder: FileHandle, name: string): Promise<FileHandle> {
  const path = within(folder, name);
  try {
    return await open(path, O_RDONLY | O_DIRECTORY);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
    // Another writer may have made it since; a link to nowhere is refused by the mkdir.
    await mkdir(path).catch((failed: NodeJS.ErrnoException) => {
      if (failed.code !== "EEXIST") throw failed;
    });
    return await open(path, O_RDONLY | O_DIRECTORY);
  }
}

/** A name in a folder that is held open, wherever the folder is moved to. */
function within(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}

function isBelow(root: string, real: string): boolean {
  return real === root || real.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** What of a path stands in the way is the request's fault; a full disk is not. */
async function asArgument<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? "";
    const reason = IN_THE_WAY.get(code);
    if (reason === undefined) throw thrown;
    throw new AgentEnvError("invalid_argument", `${JSON.stringify(path)} can't be written: ${reason}`, {
      cause: thrown,
    });
  }
}

const IN_THE_WAY = new Map([
  ["ENOTDIR", "a part of the path is no folder"],
  ["EEXIST", "a part of the path is no folder"],
  ["ENOENT", "a link in the path leads nowhere"],
  ["ELOOP", "a link in the path leads in circles"],
  ["EISDIR", "there is a folder of that name"],
  ["ENOTEMPTY", "there is a folder of that name"],
  ["ENAMETOOLONG", "a name is too long"],
  ["EACCES", "the session user may not write there"],
  ["EPERM", "the session user may not write there"],
  ["EROFS", "the session user may not write there"],
]);

/**
 * The files at and below paths of a home, each once, in the order of the paths and sorted within one. A path that isn't there
 * is skipped, and so is what lies outside the home and what is no regular file. Links to folders are not followed below a path.
 * Throws `limit_exceeded` for more than `most` files.
 */
export async function findHomeFiles(home: string, paths: readonly string[], most: number): Promise<FoundFile[]> {
  const root = await realpath(home);
  const found = new Map<string, FoundFile>();
  const look = async (path: string, followFolder: boolean): Promise<void> => {
    const full = join(root, path);
    const link = await lstat(full).catch(() => undefined);
    const real = link === undefined ? undefined : await realpath(full).catch(() => undefined);
    if (link === undefined || real === undefined || !isBelow(root, real)) return;
    const target = await lstat(real).catch(() => undefined);
    if (target?.isFile()) found.set(path, { path, real, size: target.size });
    if (found.size > most) throw new AgentEnvError("limit_exceeded", `the data paths hold more than ${most} files`);
    if (!target?.isDirectory() || (link.isSymbolicLink() && !followFolder)) return;
    const names = await readdir(real).catch(() => []);
    for (const name of names.sort()) await look(`${path}/${name}`, false);
  };
  for (const path of paths) await look(path, true);
  return [...found.values()];
}

/** Opens a file that was found, where it still is one and lies where it lay. Undefined where it is gone. Whoever opens it closes it. */
export async function openHomeFile({ real }: FoundFile): Promise<FileHandle | undefined> {
  const file = await open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  const isWhatItWas = (await file.stat()).isFile() && (await readlink(`/proc/self/fd/${file.fd}`)) === real;
  if (isWhatItWas) return file;
  await file.close();
  return undefined;
}
