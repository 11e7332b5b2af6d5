import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { SetupError } from "../errors.js";
import { copyFile, copyTree, isErrno, placeFile, type TreeEntry, walkTree } from "./trees.js";

/** What the program consists of, beside the packages that it needs. */
const PROGRAM_PARTS = ["dist", "bundles", "skills", "mcp.json", "package.json"];
/** What only compilers and debuggers read. */
const NOT_RUN = /\.(d\.[cm]?ts|map|tsbuildinfo)$/;
/** An env folder holds sources and seeds; larger data belongs into an object store. */
const MAX_FOLDER_FILES = 5000;
const MAX_FOLDER_BYTES = 64 * 1024 * 1024;
const HASH_DIGITS = 32;
/** What npm writes about what it installed. */
const PACKAGE_LOCK = join("node_modules", ".package-lock.json");
const NODE_MODE = 0o711;
const UNUSED_MS = 24 * 3600 * 1000;

export interface Staged {
  /** The Node binary to run. Everybody may run it and nobody but root may read it, see `placeNode`. */
  readonly node: string;
  /** The folders of this start: each has to stay while the computer runs. */
  readonly inUse: readonly string[];
  /** Where a path of the program or of one of the extra folders lies for the session user. */
  locate(path: string): string;
}

export interface StageOptions {
  /** Ends up below `<dataDir>/program/`. */
  readonly dataDir: string;
  /** The program's folder: the one of its package.json. */
  readonly programDir: string;
  /** Folders outside the program that the session user has to read, such as a person's own env. */
  readonly folders?: readonly string[];
  /** The group that may read copies of `folders`: they are a person's own, and everybody may read the program alone. */
  readonly gid: number;
}

/**
 * Copies the program, the packages it needs, its Node and extra folders to below `<dataDir>/program/`, owned by root and
 * readable by the session user, wherever the originals lie; of packages it makes hard links where that is safe.
 * Named by what they hold: what is there already is used, in about 20 ms. Atomic, and safe beside another start.
 *
 *     packages-HASH/   bin/node, node_modules/
 *     HASH/            agent-env/ (the program), node_modules -> the packages'
 *     env-HASH/        folders/0/NAME/…, folders/node_modules/agent-env -> the program, node_modules -> the packages'
 */
export function stage(options: StageOptions): Staged {
  const umask = process.umask(0o022);
  try {
    return stageAll(options);
  } finally {
    process.umask(umask);
  }
}

function stageAll({ dataDir, folders = [], gid, ...options }: StageOptions): Staged {
  const store = join(dataDir, "program");
  mkdirSync(store, { recursive: true, mode: 0o755 });
  const programDir = resolve(options.programDir);
  const packages = stagePackages(store, findPackages(programDir));
  const program = stageProgram(store, programDir, packages.folder);
  const copy = join(program.folder, "agent-env");
  // A folder inside the clone may be none of the program's, such as an env that a person keeps there.
  const partOf = (path: string) => PROGRAM_PARTS.some((part) => isWithin(path, join(programDir, part)));
  const outside = folders.map((folder) => resolve(folder)).filter((folder) => !partOf(folder));
  const extra = outside.length === 0 ? undefined : stageFolders(store, packages.folder, copy, outside, gid);
  const all = [packages, program, ...(extra === undefined ? [] : [extra])];
  if (all.some(({ isNew }) => isNew)) prune(store);
  return {
    node: join(packages.folder, "bin", "node"),
    inUse: all.map(({ folder }) => folder),
    locate(path) {
      const absolute = resolve(path);
      if (partOf(absolute)) return join(copy, relative(programDir, absolute));
      const index = outside.findIndex((folder) => isWithin(absolute, folder));
      const folder = outside[index];
      if (extra === undefined || folder === undefined) {
        throw new Error(`${path} is neither the program's nor in a folder that is staged`);
      }
      return join(extra.folder, "folders", String(index), basename(folder), relative(folder, absolute));
    },
  };
}

interface StagedFolder {
  readonly folder: string;
  readonly isNew: boolean;
}

/** The folder in which npm installed the program's packages: its own, or the one around it when it is a package itself. */
function findPackages(programDir: string): string {
  for (let base = programDir; ; base = dirname(base)) {
    if (existsSync(join(base, PACKAGE_LOCK))) return base;
    if (base === dirname(base)) {
      throw new SetupError(
        `npm did not install the packages of ${programDir}, so they can't be copied for another user`,
        {
          hint: "install them with npm ci, or start as the session user itself",
        },
      );
    }
  }
}

function stagePackages(store: string, base: string): StagedFolder {
  const lock = readFileSync(join(base, PACKAGE_LOCK), "utf8");
  const node = statSync(process.execPath);
  const hash = hashOf(process.version, node.size, node.mtimeMs, lock, NODE_MODE);
  return publish(join(store, `packages-${hash}`), (folder) => {
    for (const name of neededPackages(lock)) {
      const entries = walkTree(base, join("node_modules", name)).filter(({ path }) => !NOT_RUN.test(path));
      copyTree(base, entries, folder, placeFile);
    }
    mkdirSync(join(folder, "bin"));
    placeNode(join(folder, "bin", "node"));
  });
}

/**
 * The memory of a process whose program its user may run and not read is closed to that user's other processes: the kernel
 * refuses them `/proc/PID/mem` and `environ`, its descriptors and ptrace. So the tokens that reach a server are safe from the
 * programs of its computer. It holds where a process without capabilities started it, which the guardian is. It has to be a
 * copy: the mode of a hard link is the original's too.
 */
function placeNode(target: string): void {
  copyFile(realpathSync(process.execPath), target, true);
  chmodSync(target, NODE_MODE);
}

/** The packages that are not for development alone, without those that lie inside another one. */
function neededPackages(lock: string): string[] {
  const { packages } = JSON.parse(lock) as { packages: Record<string, { dev?: boolean }> };
  return Object.entries(packages).flatMap(([path, { dev }]) => {
    const [before, name, inner] = path.split("node_modules/");
    return dev || before !== "" || !name || inner !== undefined ? [] : [name];
  });
}

function stageProgram(store: string, programDir: string, packages: string): StagedFolder {
  // Packages that npm put inside the program's own folder, when that lies among others.
  const nested = basename(dirname(programDir)) === "node_modules" ? ["node_modules"] : [];
  const parts = [...PROGRAM_PARTS, ...nested].flatMap((part) => walkTree(programDir, part));
  const entries = parts.filter(({ path }) => !NOT_RUN.test(path));
  const hash = createHash("sha256").update(basename(packages));
  for (const { path, kind } of entries) {
    hash.update(`\0${kind}\0${path}\0`);
    if (kind === "file") hash.update(readFileSync(join(programDir, path)));
  }
  return publish(join(store, hash.digest("hex").slice(0, HASH_DIGITS)), (folder) => {
    copyTree(programDir, entries, join(folder, "agent-env"));
    symlinkSync(join("..", basename(packages), "node_modules"), join(folder, "node_modules"));
  });
}

/** One folder for all of them; what they import by name comes from the program and its packages. */
function stageFolders(
  store: string,
  packages: string,
  program: string,
  folders: readonly string[],
  gid: number,
): StagedFolder {
  const trees = folders.map((folder) => ({ folder, entries: folderEntries(folder) }));
  const states = trees.map(({ folder, entries }) => [folder, entries.map((entry) => Object.values(entry))]);
  const hash = hashOf(relative(store, program), gid, states);
  return publish(join(store, `env-${hash}`), (copy) => {
    for (const [index, { folder, entries }] of trees.entries()) {
      copyTree(dirname(folder), entries, join(copy, "folders", String(index)));
    }
    const own = join(copy, "folders", "node_modules");
    mkdirSync(own);
    symlinkSync(join("..", "..", "..", relative(store, program)), join(own, "agent-env"));
    symlinkSync(join("..", basename(packages), "node_modules"), join(copy, "node_modules"));
    // They are a person's own: nobody but the session user's group reads them.
    chownSync(copy, 0, gid);
    chmodSync(copy, 0o750);
  });
}

function folderEntries(folder: string): TreeEntry[] {
  const entries = walkTree(dirname(folder), basename(folder), { skip: [".git"], maxEntries: MAX_FOLDER_FILES });
  const bytes = entries.reduce((sum, entry) => sum + entry.size, 0);
  if (entries.length > MAX_FOLDER_FILES || bytes > MAX_FOLDER_BYTES) {
    throw new SetupError(`${folder} is too large to be copied for the session user`, {
      hint: `keep it below ${MAX_FOLDER_FILES} files and ${MAX_FOLDER_BYTES / 1024 / 1024} MiB, or start as the session user itself`,
    });
  }
  return entries;
}

/**
 * Makes a folder appear at once and whole, or marks it as used now when it is there. Another start that is quicker wins; the
 * two hold the same.
 */
function publish(target: string, fill: (folder: string) => void): StagedFolder {
  const now = new Date();
  try {
    utimesSync(target, now, now);
    return { folder: target, isNew: false };
  } catch (thrown) {
    if (!isErrno(thrown, "ENOENT")) throw thrown;
  }
  const draft = join(dirname(target), `.new-${process.pid}-${randomBytes(6).toString("hex")}`);
  mkdirSync(draft, { mode: 0o755 });
  try {
    fill(draft);
    renameSync(draft, target);
  } catch (thrown) {
    rmSync(draft, { recursive: true, force: true });
    if (!isErrno(thrown, "EEXIST", "ENOTEMPTY")) throw thrown;
  }
  return { folder: target, isNew: true };
}

/**
 * Removes what no start has used for a day and no computer holds: each computer keeps a shared lock on its folders. Whatever
 * can't be removed is left for another time.
 */
function prune(store: string): void {
  const before = Date.now() - UNUSED_MS;
  for (const name of readdirSync(store)) {
    const folder = join(store, name);
    const there = lstatSync(folder, { throwIfNoEntry: false });
    if (there === undefined || there.mtimeMs > before) continue;
    spawnSync("flock", ["-n", "-x", folder, "rm", "-rf", "--", folder], { stdio: "ignore" });
  }
}

function hashOf(...values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, HASH_DIGITS);
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep);
}
