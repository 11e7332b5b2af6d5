import { readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { personsFolder, readText, root } from "./places.mjs";

/**
 * What the arguments of `up` or `put`, and each env.toml that they name, say about user and driver, read without a TOML parser:
 * this runs before there are packages, and only chooses what to prepare. The command itself reads the file properly and
 * refuses what is wrong with it.
 */
export function envChoice(args) {
  const named = args.find((arg) => !arg.startsWith("-") && envFiles(resolve(personsFolder(), arg)).length > 0);
  const texts = envFiles(named === undefined ? join(root, "bundles/desk") : resolve(personsFolder(), named));
  const all = (key) => texts.map((text) => topLevel(key, text)).filter((value) => value !== undefined);
  const drivers = all("driver");
  return {
    user: flagOf("--user", args) ?? all("user")[0],
    driver: drivers.find((driver) => driver === "cua-driver") ?? drivers[0],
  };
}

/** The env.toml of a folder, or of each env of a bundle's. */
function envFiles(folder) {
  const envs = join(folder, "envs");
  const folders = isFolder(envs) ? readdirSync(envs).map((name) => join(envs, name)) : [folder];
  return folders.map((each) => readText(join(each, "env.toml"))).filter((text) => text !== undefined);
}

function isFolder(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

export function flagOf(flag, args) {
  for (const [index, arg] of args.entries()) {
    if (arg === flag) return args[index + 1];
    if (arg.startsWith(`${flag}=`)) return arg.slice(flag.length + 1);
  }
  return undefined;
}

/** The value of a string key before the first table. */
function topLevel(key, toml) {
  const [head = ""] = toml.split(/^\s*\[/m);
  return new RegExp(`^\\s*${key}\\s*=\\s*(["'])(.*?)\\1`, "m").exec(head)?.[2];
}
