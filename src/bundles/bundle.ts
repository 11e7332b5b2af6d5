import { lstatSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { SetupError } from "../errors.js";
import { type EnvFile, readEnvFile } from "./env-file.js";

/** What a bundle or an env may be called: part of an id, and the name of a folder. */
export const ENV_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const LAYOUTS =
  "a bundle is a folder with envs/ENV/env.toml for each of its envs, or with the env.toml of its only one";

/** One env of a bundle. */
export interface BundleEnv {
  /** `<bundle>/<env>`, or `<bundle>` for a bundle that is one env. */
  readonly id: string;
  /** The last part of the id: what the env is called unless its file or the environment says otherwise. */
  readonly name: string;
  /** Absolute. */
  readonly folder: string;
  readonly file: EnvFile;
}

/**
 * The envs of a bundle's folder, by name: `BUNDLE/envs/ENV/env.toml` each, or `BUNDLE/env.toml` alone. Anything else that
 * lies in `envs` is a SetupError, dot files apart, and so is an env.toml that isn't right.
 */
export function readBundle(folder: string): BundleEnv[] {
  const bundle = resolve(folder);
  const name = checkName(bundle);
  if (!isFolder(bundle)) throw new SetupError(`there is no folder ${bundle}`, { hint: LAYOUTS });
  const envs = join(bundle, "envs");
  const alone = isFile(join(bundle, "env.toml"));
  if (!isFolder(envs)) {
    if (!alone) throw new SetupError(`${bundle} has neither env.toml nor a folder envs`, { hint: LAYOUTS });
    return [{ id: name, name, folder: bundle, file: readEnvFile(bundle) }];
  }
  if (alone) throw new SetupError(`${bundle} has both env.toml and a folder envs`, { hint: LAYOUTS });
  const names = readdirSync(envs)
    .filter((each) => !each.startsWith("."))
    .sort();
  if (names.length === 0) throw new SetupError(`${envs} holds no env`, { hint: LAYOUTS });
  return names.map((each) => {
    const env = join(envs, each);
    if (!isFolder(env))
      throw new SetupError(`${env} is no folder: expected is ${join(env, "env.toml")}`, { hint: LAYOUTS });
    return { id: `${name}/${checkName(env)}`, name: each, folder: env, file: readEnvFile(env) };
  });
}

/** Part of an id, which is shown, compared and stored: so nothing that a shell, a URL or a terminal would take otherwise. */
function checkName(path: string): string {
  const name = basename(path);
  if (ENV_NAME.test(name)) return name;
  throw new SetupError(`${path} can't be the name of a bundle or of an env`, {
    hint: "a name is made of letters, digits, dots, hyphens and underscores, and begins with a letter or a digit",
  });
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
