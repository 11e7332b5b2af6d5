import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import {
  copyPackages,
  envPackages,
  NOT_RUN,
  type Packages,
  PROGRAM,
  packagesFolder,
  programPackages,
} from "./packages.js";
import { copyFile, copyTree, isErrno, isWithin, type TreeEntry, walkTree } from "./trees.js";

/** What the program consists of, beside the packages that it needs. */
const PROGRAM_PARTS = ["dist", "bundles", "skills", "mcp.json", "package.json"];
/** An env folder holds sources and seeds; larger data belongs into an object store. */
const MAX_FOLDER_FILES = 5000;
const MAX_FOLDER_BYTES = 64 * 1024 * 1024;
const HASH_DIGITS = 32;
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
 *     packages-HASH/      bin/node, node_modules/
 *     HASH/               agent-env/ (the program), node_modules -> the packages'
 *     env-packages-HASH/  node_modules/ with agent-env -> the program
 *     env-HASH/           folders/0/NAME/ with node_modules -> its own packages',
 *                         folders/node_modules/agent-env -> the program, node_modules -> the packages'
 *
 * A program that is installed among an env's packages is one of the packages, and they are the env's.
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
  try {
    makeFolder(store, 0o755);
  } catch (cause) {
    throw new SetupError(`the data folder can't be used: ${messageOf(cause)}`, {
      hint: "set AGENTENV_DATA to a folder that can be made and written",
      cause,
    });
  }
  const programDir = resolve(options.programDir);
  const needed = programPackages(programDir);
  const isPackage = needed.base !== programDir && isWithin(programDir, join(needed.base, "node_modules"));
  const packages = stagePackages(store, needed, isPackage ? gid : undefined);
  const program = isPackage ? undefined : stageProgram(store, programDir, packages.folder);
  const copy = program ? join(program.folder, PROGRAM) : join(packages.folder, relative(needed.base, programDir));
  // A folder inside the clone may be none of the program's, such as an env that a person keeps there.
  const partOf = (path: string) => PROGRAM_PARTS.some((part) => isWithin(path, join(programDir, part)));
  const outside = folders.map((folder) => resolve(folder)).filter((folder) => !partOf(folder));
  const staged: StagedFolder[] = [];
  const withPackages = outside.map((path): Folder => {
    const base = packagesFolder(path);
    if (base === undefined) return { path };
    if (realpathSync(base) === realpathSync(needed.base)) return { path, base, packages: packages.folder };
    const ownStaged = stageEnvPackages(store, envPackages(base, programDir), copy, gid);
    staged.push(ownStaged);
    return { path, base, packages: ownStaged.folder };
  });
  const extra = outside.length === 0 ? undefined : stageFolders(store, packages.folder, copy, withPackages, gid);
  const all = [packages, program, ...staged, extra].filter((each) => each !== undefined);
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

/** With a group they are those of a person's project, which may want more of them than what only runs. */
function stagePackages(store: string, packages: Packages, gid: number | undefined): StagedFolder {
  const node = statSync(process.execPath);
  const hash = hashOf(process.version, node.size, node.mtimeMs, packages.state, NODE_MODE, gid);
  return publish(join(store, `packages-${hash}`), (folder) => {
    if (gid !== undefined) closeTo(folder, gid);
    copyPackages(packages, folder, { types: gid !== undefined });
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

function stageProgram(store: string, programDir: string, packages: string): StagedFolder {
  const parts = PROGRAM_PARTS.flatMap((part) => walkTree(programDir, part));
  const entries = parts.filter(({ path }) => !NOT_RUN.test(path));
  return publish(join(store, hashOf(basename(packages), contents(programDir, entries))), (folder) => {
    copyTree(programDir, entries, join(folder, PROGRAM));
    symlinkSync(join("..", basename(packages), "node_modules"), join(folder, "node_modules"));
  });
}

/** What an env's folder has installed for itself, with the program in the place of what it installed as `agent-env`. */
function stageEnvPackages(store: string, packages: Packages, program: string, gid: number): StagedFolder {
  const hash = hashOf(relative(store, program), gid, packages.state);
  return publish(join(store, `env-packages-${hash}`), (folder) => {
    closeTo(folder, gid);
    copyPackages(packages, folder, { types: true });
    linkProgram(join(folder, "node_modules"), join("..", "..", relative(store, program)));
  });
}

interface Folder {
  readonly path: string;
  /** Whose `node_modules` its modules find, and where a copy of them lies. */
  readonly base?: string;
  readonly packages?: string;
}

/** One folder for all of them; what they import by name comes from their own packages, the program and the program's. */
function stageFolders(
  store: string,
  packages: string,
  program: string,
  folders: readonly Folder[],
  gid: number,
): StagedFolder {
  const trees = folders.map((folder) => ({ ...folder, entries: folderEntries(folder) }));
  // Not by its times: `npm start` builds it anew before each start.
  const states = trees.map(({ entries, ...folder }) => [folder, contents(dirname(folder.path), entries)]);
  const hash = hashOf(relative(store, program), basename(packages), gid, states);
  return publish(join(store, `env-${hash}`), (copy) => {
    closeTo(copy, gid);
    for (const [index, { path, base, packages: own, entries }] of trees.entries()) {
      const around = join(copy, "folders", String(index));
      copyTree(dirname(path), entries, around);
      if (own === undefined) continue;
      // A link has to lead from where the copy will be.
      const holder = base === path ? join(around, basename(path)) : around;
      const depth = relative(copy, holder)
        .split("/")
        .map(() => "..");
      symlinkSync(join(...depth, "..", basename(own), "node_modules"), join(holder, "node_modules"));
    }
    linkProgram(join(copy, "folders", "node_modules"), join("..", "..", "..", relative(store, program)));
    symlinkSync(join("..", basename(packages), "node_modules"), join(copy, "node_modules"));
  });
}

/** The server and an env's modules have to mean the same classes, so both load this one. */
function linkProgram(modules: string, target: string): void {
  mkdirSync(modules, { recursive: true });
  symlinkSync(target, join(modules, PROGRAM));
}

/** What is a person's own: nobody but the session user's group reads it. */
function closeTo(folder: string, gid: number): void {
  chownSync(folder, 0, gid);
  chmodSync(folder, 0o750);
}

function folderEntries({ path: folder, base }: Folder): TreeEntry[] {
  const skip = [".git", ...(base === folder ? ["node_modules"] : [])];
  const entries = walkTree(dirname(folder), basename(folder), { skip, maxEntries: MAX_FOLDER_FILES });
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

/** Tells whether two trees hold the same. */
function contents(base: string, entries: readonly TreeEntry[]): string {
  const hash = createHash("sha256");
  for (const { path, kind, size, executable } of entries) {
    hash.update(`\0${kind}\0${path}\0${executable}\0${size}\0`);
    if (kind === "file") hash.update(readFileSync(join(base, path)));
    else if (kind === "link") hash.update(readlinkSync(join(base, path)));
  }
  return hash.digest("hex");
}

function hashOf(...values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, HASH_DIGITS);
}
