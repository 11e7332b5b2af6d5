import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The clone that this script belongs to. */
export const root = resolve(fileURLToPath(import.meta.url), "../../..");

/** What the bootstrap keeps for itself: the Node it brought, its lock, its log. Git ignores it. */
export const ownFolder = join(root, ".agentenv");
export const logFile = join(ownFolder, "bootstrap.log");

export const isRoot = process.getuid?.() === 0;

/** Where drivers are installed, as the command line finds it too. */
export function dataFolder() {
  if (process.env.AGENTENV_DATA) return process.env.AGENTENV_DATA;
  if (isRoot) return "/var/lib/agentenv";
  return join(process.env.XDG_DATA_HOME || join(homedir(), ".local/share"), "agentenv");
}

/** Where the person stood who typed the command; npm itself moves to the clone. */
export function personsFolder() {
  return process.env.INIT_CWD || process.cwd();
}

export function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** The contents of a text file, or undefined when there is none. */
export function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  }
}
