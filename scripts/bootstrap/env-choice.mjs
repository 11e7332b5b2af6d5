import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { personsFolder, readText, root } from "./places.mjs";

/** The options of `up` and `put` that take a value, which is no env then. A test holds this to what the commands take. */
export const WITH_VALUE = [
  "--port",
  "--host",
  "--display",
  "--user",
  "--tokens",
  "--allowed-host",
  "--log-level",
  "--log-file",
  "--store",
];

/**
 * What the arguments of `up` or `put`, and each env.toml that they name, say about user and driver, read without a TOML parser:
 * this runs before there are packages, and only chooses what to prepare. The command itself reads the file properly and
 * refuses what is wrong with it: what can't be read here says nothing.
 */
export function envChoice(args) {
  const texts = envFiles(envFolder(firstOperand(args) ?? "bundles/desk"));
  const all = (key) => texts.map((text) => topLevel(key, text)).filter((value) => value !== undefined);
  const drivers = all("driver");
  return {
    user: flagOf("--user", args) ?? all("user")[0],
    driver: drivers.find((driver) => driver === "cua-driver") ?? drivers[0],
  };
}

/** As the command finds it: from where the person stands, and `bundles/desk` from anywhere. */
function envFolder(named) {
  const given = resolve(personsFolder(), named);
  const found = named.startsWith("bundles/") && !existsSync(given) ? join(root, named) : given;
  return basename(found) === "env.toml" ? dirname(found) : found;
}

function firstOperand(args) {
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index];
    if (arg === "--") return args[index + 1];
    if (!arg.startsWith("-")) return arg;
    if (WITH_VALUE.includes(arg)) index += 1;
  }
  return undefined;
}

/** The env.toml of a folder, or of each env of a bundle's, as far as they can be read. */
function envFiles(folder) {
  const envs = join(folder, "envs");
  const names = readable(() => statSync(envs).isDirectory() && readdirSync(envs));
  const folders = names ? names.map((name) => join(envs, name)) : [folder];
  return folders.map((each) => readable(() => readText(join(each, "env.toml")))).filter((text) => text !== undefined);
}

function readable(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The value of a flag among the arguments. */
export function flagOf(flag, args) {
  for (let index = 0; index < args.length && args[index] !== "--"; index += 1) {
    const arg = args[index];
    if (arg === flag) return args[index + 1];
    if (arg.startsWith(`${flag}=`)) return arg.slice(flag.length + 1);
    if (WITH_VALUE.includes(arg)) index += 1;
  }
  return undefined;
}

/** The value of a string key before the first table. */
function topLevel(key, toml) {
  const [head = ""] = toml.split(/^\s*\[/m);
  return new RegExp(`^\\s*${key}\\s*=\\s*(["'])(.*?)\\1`, "m").exec(head)?.[2];
}
