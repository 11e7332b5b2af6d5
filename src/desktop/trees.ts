import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";

/** One file, folder or symbolic link of a tree, its path relative to where the walk began. */
export interface TreeEntry {
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  readonly size: number;
  readonly mtimeMs: number;
  readonly executable: boolean;
}

/**
 * Lists `part` of `base`, in a fixed order, a folder before what it holds; nothing when it isn't there. Symbolic links are not
 * followed; sockets, pipes and devices are left out. It stops soon after `maxEntries`.
 */
export function walkTree(
  base: string,
  part: string,
  limits: { skip?: readonly string[]; maxEntries?: number } = {},
): TreeEntry[] {
  const entries: TreeEntry[] = [];
  const visit = (path: string) => {
    if (entries.length > (limits.maxEntries ?? Number.POSITIVE_INFINITY)) return;
    const there = lstatSync(join(base, path), { throwIfNoEntry: false });
    if (there === undefined) return;
    const kind = there.isFile() ? "file" : there.isDirectory() ? "folder" : there.isSymbolicLink() ? "link" : undefined;
    if (kind === undefined) return;
    const size = kind === "file" ? there.size : 0;
    entries.push({ path, kind, size, mtimeMs: there.mtimeMs, executable: (there.mode & 0o111) !== 0 });
    if (kind !== "folder") return;
    for (const name of readdirSync(join(base, path)).sort()) {
      if (!limits.skip?.includes(name)) visit(join(path, name));
    }
  };
  visit(part);
  return entries;
}

/** Copies what `walkTree` listed, with this process's umask in place of the originals' modes, owners and times. */
export function copyTree(base: string, entries: readonly TreeEntry[], target: string, place = copyFile): void {
  const made = new Set<string>();
  for (const { path, kind, executable } of entries) {
    const copy = join(target, path);
    const folder = kind === "folder" ? copy : dirname(copy);
    if (!made.has(folder)) mkdirSync(folder, { recursive: true, mode: 0o755 });
    made.add(folder);
    if (kind === "link") symlinkSync(readlinkSync(join(base, path)), copy);
    else if (kind === "file") place(join(base, path), copy, executable);
  }
}

/** Copies one regular file; a symbolic link in its place is refused, as it may lead to what only root may read. */
export function copyFile(source: string, target: string, executable: boolean): void {
  const file = openSync(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${source} is no regular file`);
    copyFileSync(`/proc/self/fd/${file}`, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    chmodSync(target, executable ? 0o755 : 0o644);
  } finally {
    closeSync(file);
  }
}

/**
 * Makes a hard link where everybody can read the file and nobody but root can change it, else a copy. For what is replaced and
 * never edited: it costs neither time nor space.
 */
export function placeFile(source: string, target: string, executable: boolean): void {
  const there = lstatSync(source);
  const readable = executable ? 0o555 : 0o444;
  if (there.isFile() && there.uid === 0 && (there.mode & 0o022) === 0 && (there.mode & readable) === readable) {
    try {
      linkSync(source, target);
      return;
    } catch (thrown) {
      if (!isErrno(thrown, "EXDEV", "EPERM", "EMLINK")) throw thrown;
    }
  }
  copyFile(source, target, executable);
}

export function isErrno(thrown: unknown, ...codes: string[]): boolean {
  return thrown instanceof Error && "code" in thrown && codes.includes(String(thrown.code));
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep);
}
