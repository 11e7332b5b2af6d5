import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  opendirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import type { FileIntake } from "./file-intake.js";
import { isScript, type Skill, SkillIntake } from "./skill.js";

/**
 * Reads a folder as a skill. Blocks for as long as 16 MiB take to read. A link to a file of the same folder is read as
 * that file. Throws SkillRefused, SetupError where there is no such folder.
 */
export function readSkillFolder(folder: string): Skill {
  const given = resolve(folder);
  let root: string;
  try {
    root = realpathSync(given);
    if (!lstatSync(root).isDirectory()) throw new Error("it is not a folder");
  } catch (cause) {
    throw new SetupError(`${given} can't be read as a skill: ${messageOf(cause)}`, {
      hint: "a skill is a folder with a file SKILL.md",
      cause,
    });
  }
  const intake = new SkillIntake(given);
  takeFolder(root, intake);
  return intake.finish(basename(given));
}

/**
 * Takes in every file below `root`, a real path, but what is called as in `skip`. A link to a file below it is read as that
 * file; anything else that is no file is refused.
 */
export function takeFolder(root: string, intake: FileIntake, skip: readonly string[] = []): void {
  const { files } = intake.limits;
  const folders = [""];
  // `folders` grows while it is walked; its bound stands for folders that hold no file too.
  for (const at of folders) {
    for (const name of namesIn(join(root, at), at, intake)) {
      if (skip.includes(name)) continue;
      const path = at === "" ? name : `${at}/${name}`;
      const kind = lstatSync(join(root, path));
      if (kind.isDirectory()) {
        intake.checkPath(path);
        if (folders.push(path) > files) throw intake.refuse(path, `is one folder more than ${files}`);
      } else {
        readInto(intake, path, fileAt(root, path, kind, intake));
      }
    }
  }
}

/** Names are read as bytes: a name that is no UTF-8 would otherwise come back as one that isn't there. */
function namesIn(folder: string, path: string, intake: FileIntake): string[] {
  const names: string[] = [];
  const most = 2 * intake.limits.files;
  const listing = opendirSync(folder, { encoding: "buffer" as BufferEncoding });
  try {
    for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
      const bytes = entry.name as unknown as Buffer;
      const name = bytes.toString("utf8");
      const shown = path === "" ? name : `${path}/${name}`;
      if (!Buffer.from(name).equals(bytes)) throw intake.refuse(shown, "has a name that is not UTF-8");
      if (names.push(name) > most) throw intake.refuse(shown, `is one of more than ${most} entries`);
    }
  } finally {
    listing.closeSync();
  }
  return names.sort();
}

/** Where the file of an entry that is no folder lies; anything but a file, or a link to one of this skill, is refused. */
function fileAt(root: string, path: string, kind: Stats, intake: FileIntake): string {
  const full = join(root, path);
  if (kind.isFile()) return full;
  if (!kind.isSymbolicLink()) throw intake.refuse(path, `is ${kindOf(kind)}`);
  let target: string;
  try {
    target = realpathSync(full);
  } catch (cause) {
    throw intake.refuse(path, "is a symbolic link that leads nowhere", { cause });
  }
  if (!target.startsWith(root + sep))
    throw intake.refuse(path, `is a symbolic link that leaves the ${intake.what}'s folder`);
  const there = lstatSync(target);
  if (!there.isFile()) throw intake.refuse(path, `is a symbolic link to ${kindOf(there)}`);
  return target;
}

function kindOf(kind: Stats): string {
  if (kind.isFIFO()) return "a FIFO";
  if (kind.isSocket()) return "a socket";
  if (kind.isDirectory()) return "a folder";
  return kind.isBlockDevice() || kind.isCharacterDevice() ? "a device" : "no file";
}

/** What is opened is looked at again, and opening never waits: the entry may have become something else meanwhile. */
function readInto(intake: FileIntake, path: string, full: string): void {
  let handle: number;
  try {
    handle = openSync(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    throw intake.refuse(path, `can't be opened: ${messageOf(cause)}`, { cause });
  }
  try {
    const found = fstatSync(handle);
    if (!found.isFile()) throw intake.refuse(path, `is ${kindOf(found)}`);
    const admitted = intake.admit(path, found.size);
    const bytes = Buffer.allocUnsafe(found.size);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(handle, bytes, length, bytes.length - length, null);
      if (read === 0) throw intake.refuse(path, "became shorter while it was read");
      length += read;
    }
    intake.put(admitted, bytes);
  } finally {
    closeSync(handle);
  }
}

/** Writes a skill's files into a folder that isn't there yet, or is empty: all of them or none. Throws SetupError. */
export function writeSkillFolder(skill: Skill, folder: string): void {
  const contents = [...skill.contents()].map(([{ path }, bytes]) => [path, bytes] as const);
  writeFolder(contents, folder, "skill");
}

/**
 * Writes files into a folder that isn't there yet, or is empty: all of them or none. Scripts (files that begin with `#!`)
 * are made executable. Throws SetupError, which says that `what` can't be written.
 */
export function writeFolder(contents: Iterable<readonly [path: string, bytes: Buffer]>, folder: string, what: string) {
  const target = resolve(folder);
  let fresh: string | undefined;
  try {
    makeFolder(dirname(target));
    fresh = join(dirname(target), `.${what}-${randomUUID()}`);
    mkdirSync(fresh);
    for (const [path, bytes] of contents) {
      const file = join(fresh, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes, { flag: "wx", mode: isScript(bytes) ? 0o755 : 0o644 });
    }
    // Fails where something lies there already; an empty folder is replaced.
    renameSync(fresh, target);
  } catch (cause) {
    if (fresh !== undefined) rmSync(fresh, { recursive: true, force: true });
    throw new SetupError(`the ${what} can't be written to ${target}: ${messageOf(cause)}`, {
      hint: "name a folder that isn't there yet, or an empty one",
      cause,
    });
  }
}
