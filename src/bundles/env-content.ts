import { realpathSync } from "node:fs";
import { FileIntake } from "../skills/file-intake.js";
import { takeFolder } from "../skills/folder.js";

/** An env's folder holds sources and seeds; larger data belongs into an object store. The session user's copy has the same bounds. */
export const MAX_ENV_FILES = 5000;
const MAX_ENV_BYTES = 64 * 1024 * 1024;

/** What a version control keeps and what a package manager can bring again. */
const NOT_KEPT = [".git", "node_modules"];

/** What the files of an env have to keep to, wherever they come from. */
export function envIntake(origin: string): FileIntake {
  return new FileIntake(origin, { files: MAX_ENV_FILES, bytes: MAX_ENV_BYTES }, "env");
}

/**
 * The files of an env's folder, by path, for its record. Packages are left out: an env of a record is served with
 * agent-env and the packages of its own, and has what else it imports in its own files. A link to a file of the folder is
 * read as that file. What no file system could hold, what leaves the folder and what is no file is a SetupError that names it.
 */
export function readEnvContent(folder: string): ReadonlyMap<string, Buffer> {
  const intake = envIntake(folder);
  takeFolder(realpathSync(folder), intake, NOT_KEPT);
  return intake.contents;
}
