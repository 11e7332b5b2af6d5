import { readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { SetupError } from "../errors.js";
import { type EnvFile, readEnvFile } from "./env-file.js";
import { isLink, kindOf } from "./kind-of.js";

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
  if (!isFolder(bundle)) throw noFolder(bundle);
  const envs = join(bundle, "envs");
  const alone = isFile(join(bundle, "env.toml"));
  if (!isFolder(envs)) {
    const file = join(bundle, "env.toml");
    if (!alone) {
      const there = isLink(file) ? "link" : kindOf(file);
      throw new SetupError(
        there === undefined ? `${bundle} has neither env.toml nor a folder envs` : `${file} is a ${there}, and no file`,
        { hint: LAYOUTS },
      );
    }
    return [{ id: name, name, folder: bundle, file: readEnvFile(bundle) }];
  }
  if (alone) throw new SetupError(`${bundle} has both env.toml and a folder envs`, { hint: LAYOUTS });
  const names = readdirSync(envs)
    .filter((each) => !each.startsWith("."))
    .sort();
  if (names.length === 0) throw new SetupError(`${envs} holds no env`, { hint: LAYOUTS });
  return names.map((each) => {
    const env = join(envs, each);
    if (!isFolder(env)) {
      throw new SetupError(`${env} is no folder: expected is ${join(env, "env.toml")}`, { hint: LAYOUTS });
    }
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

function noFolder(path: string): SetupError {
  const there = isLink(path) ? "link" : kindOf(path);
  return new SetupError(there === undefined ? `there is no folder ${path}` : `${path} is a ${there}, and no folder`, {
    hint: `name the folder: ${LAYOUTS}`,
  });
}

/** A link counts as none of both: a record holds what lies in the folder itself. */
function isFolder(path: string): boolean {
  return kindOf(path) === "folder" && !isLink(path);
}

function isFile(path: string): boolean {
  return kindOf(path) === "file" && !isLink(path);
}
