import { randomUUID } from "node:crypto";
import type { Dirent } from "node:fs";
import { type FileHandle, mkdir, mkdtemp, open, readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { AgentEnvError, messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import { FolderSync } from "./folder-sync.js";
import { checkKey, checkPrefix, type ObjectInfo, type ObjectPage, type ObjectStore } from "./object-store.js";

/** As many as S3 answers. */
const PAGE = 1000;
/** What is being written; no key begins with a dot. */
const UNFINISHED = ".unfinished";
/** What a person has to put right: another try fails the same way. */
const NOT_RIGHT = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "EEXIST",
  "ELOOP",
  "ENAMETOOLONG",
]);
const UNFINISHED_MS = 24 * 60 * 60 * 1000;

/**
 * Objects as files of a folder, each under its key. A file is written under another name, synced and renamed, so that a
 * reader, a crash or a second writer at the same time never makes half of one.
 */
export class FolderStore implements ObjectStore {
  readonly url: string;
  /** More wait for the four threads that Node has for files. */
  readonly parallel = 8;
  readonly #syncs = new FolderSync();
  /** Folders of which this writer knows that their own names last. */
  readonly #lasting = new Set<string>();
  #swept: Promise<void> | undefined;

  constructor(
    /** An absolute path; the folder is made by the first put. */
    readonly folder: string,
  ) {
    this.url = pathToFileURL(folder).href;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const target = this.#path(key);
    const unfinished = join(this.folder, UNFINISHED, `${process.pid}-${randomUUID()}`);
    try {
      this.#swept ??= this.#sweep();
      await this.#swept;
      await writeSynced(unfinished, bytes);
      await this.#place(unfinished, target);
    } catch (thrown) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw this.#failure(`can't write ${key}`, thrown);
    }
  }

  /** Tries it with a folder of its own, so that a store that isn't there yet is not made for an object that may never come. */
  async checkWritable(): Promise<void> {
    try {
      let there = this.folder;
      while (!(await isThere(there)) && there !== dirname(there)) there = dirname(there);
      await rmdir(await mkdtemp(join(there, `${UNFINISHED}-`)));
    } catch (thrown) {
      throw this.#failure("can't be written", thrown);
    }
  }

  async get(key: string, limit: number): Promise<Buffer | undefined> {
    const path = this.#path(key);
    let file: FileHandle | undefined;
    try {
      file = await open(path, "r");
      const { size } = await file.stat();
      const bytes = Buffer.allocUnsafe(Math.min(size, limit + 1));
      let length = 0;
      while (length < bytes.length) {
        const { bytesRead } = await file.read(bytes, length, bytes.length - length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return bytes.subarray(0, length);
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw this.#failure(`can't read ${key}`, thrown);
    } finally {
      await file?.close();
    }
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    return this.#look(key);
  }

  async list(prefix: string, next = ""): Promise<ObjectPage> {
    checkPrefix(prefix);
    const keys: string[] = [];
    for await (const key of this.#keys("", prefix, next)) {
      if (keys.push(key) > PAGE) break;
    }
    const objects: ObjectInfo[] = [];
    for (const info of await Promise.all(keys.slice(0, PAGE).map((key) => this.#look(key)))) {
      // One that was deleted meanwhile is in no list.
      if (info !== undefined) objects.push(info);
    }
    const last = keys[PAGE - 1];
    return { objects, ...(keys.length > PAGE && last !== undefined ? { next: last } : {}) };
  }

  async delete(key: string): Promise<void> {
    const path = this.#path(key);
    try {
      await rm(path, { force: true });
      for (let folder = dirname(path); folder !== this.folder; folder = dirname(folder)) await rmdir(folder);
    } catch (thrown) {
      // A folder that still holds something stays.
      const { code } = thrown as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST" || isAbsent(thrown)) return;
      throw this.#failure(`can't delete ${key}`, thrown);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #path(key: string): string {
    checkKey(key);
    return join(this.folder, ...key.split("/"));
  }

  async #look(key: string): Promise<ObjectInfo | undefined> {
    const path = this.#path(key);
    try {
      const found = await stat(path);
      return found.isFile() ? { key, size: found.size, modified: found.mtime } : undefined;
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw this.#failure(`can't look at ${key}`, thrown);
    }
  }

  /** Keys with the prefix after `after`, in order, walking no folder that can't hold one. */
  async *#keys(at: string, prefix: string, after: string): AsyncGenerator<string> {
    let entries: Dirent[];
    try {
      entries = await readdir(join(this.folder, at), { withFileTypes: true });
    } catch (thrown) {
      if (isAbsent(thrown)) return;
      throw this.#failure("can't be listed", thrown);
    }
    const named = entries
      .filter((entry) => !entry.name.startsWith(".") && (entry.isDirectory() || entry.isFile()))
      .map((entry) => `${at}${entry.name}${entry.isDirectory() ? "/" : ""}`)
      .sort();
    for (const key of named) {
      const isFolder = key.endsWith("/");
      if (!key.startsWith(prefix) && !(isFolder && prefix.startsWith(key))) continue;
      if (key <= after && !(isFolder && after.startsWith(key))) continue;
      if (isFolder) yield* this.#keys(key, prefix, after);
      else yield key;
    }
  }

  /** Renames to the target and makes that last. A delete may take the folder away just then, so it is made again. */
  async #place(unfinished: string, target: string): Promise<void> {
    const folder = dirname(target);
    for (let tried = 1; ; tried += 1) {
      let made: string | undefined;
      try {
        made = await makeStepwise(folder);
        await rename(unfinished, target);
      } catch (thrown) {
        if (isAbsent(thrown) && tried < 5) continue;
        throw thrown;
      }
      await this.#syncs.sync(folder);
      // Whoever made the folders above may not have come to sync them yet, so each writer does it once.
      if (made === undefined && this.#lasting.has(folder)) return;
      const top = made !== undefined && made.length < this.folder.length ? dirname(made) : this.folder;
      for (let above = folder; above !== top; above = dirname(above)) await this.#syncs.sync(dirname(above));
      this.#lasting.add(folder);
      return;
    }
  }

  /** Makes the folder, and removes what writers left that were killed days ago. */
  async #sweep(): Promise<void> {
    const folder = join(this.folder, UNFINISHED);
    await makeStepwise(folder);
    for (const name of await readdir(folder)) {
      const found = await stat(join(folder, name)).catch(() => undefined);
      if (found !== undefined && Date.now() - found.mtimeMs > UNFINISHED_MS) {
        await rm(join(folder, name), { force: true, recursive: true });
      }
    }
  }

  #failure(what: string, cause: unknown): Error {
    const { code } = cause as NodeJS.ErrnoException;
    const message = `the store ${this.url} ${what}: ${messageOf(cause)}`;
    if (code === "ENOSPC" || code === "EDQUOT") {
      return new SetupError(`the store ${this.url} is full: ${messageOf(cause)}`, { hint: "make room there", cause });
    }
    if (code !== undefined && NOT_RIGHT.has(code)) {
      return new SetupError(message, {
        hint: "name another store with --store, or put its folder right",
        cause,
      });
    }
    return new AgentEnvError("device_unavailable", message, { cause });
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (isAbsent(thrown)) return false;
    throw thrown;
  }
}

/** Answers the topmost folder that it made. Mostly the folder is there, or only it is missing. */
async function makeStepwise(folder: string): Promise<string | undefined> {
  try {
    await mkdir(folder);
    return folder;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "EEXIST" ? undefined : makeFolder(folder);
  }
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o644);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

function isAbsent(thrown: unknown): boolean {
  return (thrown as NodeJS.ErrnoException).code === "ENOENT";
}
