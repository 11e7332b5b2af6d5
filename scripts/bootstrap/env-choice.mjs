import { join, resolve } from "node:path";
import { personsFolder, readText, root } from "./places.mjs";

/**
 * What the arguments of `up`, and the env.toml that they name, say about user and driver, read without a TOML parser: this
 * runs before there are packages, and only chooses what to prepare. `up` itself reads the file properly and refuses what is
 * wrong with it.
 */
export function envChoice(args) {
  const folder = args.find((arg) => !arg.startsWith("-") && envFile(resolve(personsFolder(), arg)) !== undefined);
  const text = envFile(folder === undefined ? join(root, "bundles/desk") : resolve(personsFolder(), folder)) ?? "";
  return { user: flagOf("--user", args) ?? topLevel("user", text), driver: topLevel("driver", text) };
}

function envFile(folder) {
  return readText(join(folder, "env.toml"));
}

function flagOf(flag, args) {
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
