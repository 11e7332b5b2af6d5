import { randomUUID } from "node:crypto";
import { existsSync, readlinkSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import { packageRoot } from "../package-root.js";
import { takeFolder, writeFolder } from "../skills/folder.js";
import { envIntake } from "./env-content.js";

/** Others may place the same at the same time, and clear away what was wrong before. */
const ATTEMPTS = 5;

/**
 * Makes `<base>/<key>/<name>` hold exactly these files, and answers that folder. What is there already and the same is left as
 * it is; anything else there is replaced, all of it at once. Throws a SetupError.
 */
export function placeEnv(base: string, key: string, name: string, contents: ReadonlyMap<string, Buffer>): string {
  const folder = join(base, key, name);
  for (let tried = 1; !holds(folder, contents); tried += 1) {
    try {
      writeFolder(contents, folder, "env");
    } catch (thrown) {
      // Another start of the same may have been quicker; what is wrong has to go.
      if (tried > ATTEMPTS || !existsSync(folder)) throw thrown;
      if (!holds(folder, contents)) remove(folder);
    }
  }
  // Root has copies for the session user, which lie beside what they import.
  if (process.getuid?.() !== 0) linkPackages(base, key);
  return folder;
}

/** At once: nobody finds half of it. */
function remove(folder: string): void {
  const aside = `${folder}.${randomUUID()}`;
  try {
    renameSync(folder, aside);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return;
    throw new SetupError(`${folder} can't be replaced: ${messageOf(thrown)}`, { cause: thrown });
  }
  rmSync(aside, { recursive: true, force: true });
}

function holds(folder: string, contents: ReadonlyMap<string, Buffer>): boolean {
  const intake = envIntake(folder);
  try {
    takeFolder(realpathSync(folder), intake);
  } catch (thrown) {
    // Nothing lies there, or something that an env can't hold.
    if (thrown instanceof SetupError || (thrown as NodeJS.ErrnoException).code !== undefined) return false;
    throw thrown;
  }
  const there = intake.contents;
  return (
    there.size === contents.size && [...contents].every(([path, bytes]) => there.get(path)?.equals(bytes) === true)
  );
}

/** What a class imports is found above its folder: this agent-env, and the packages that it has itself. */
function linkPackages(base: string, key: string): void {
  const zod = createRequire(import.meta.url).resolve("zod");
  const packages = zod.slice(0, zod.lastIndexOf(`${sep}node_modules${sep}`) + `${sep}node_modules`.length);
  try {
    link(packages, join(base, "node_modules"));
    link(packageRoot, join(base, key, "node_modules", "agent-env"));
  } catch (cause) {
    throw new SetupError(`the packages can't be linked below ${base}: ${messageOf(cause)}`, { cause });
  }
}

function link(target: string, path: string): void {
  if (linkedTo(path) === target) return;
  makeFolder(dirname(path));
  const fresh = `${path}.${randomUUID()}`;
  symlinkSync(target, fresh);
  renameSync(fresh, path);
}

function linkedTo(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
