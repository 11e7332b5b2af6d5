import { realpathSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { type ComputerSettings, loadSettings } from "../computer/settings.js";
import { SetupError } from "../errors.js";
import { readDataFiles } from "./data-files.js";
import type { EnvFile } from "./env-file.js";
import { driverModule } from "./load-class.js";
import { requirePackages } from "./packages.js";

export interface CheckedEnv {
  /** The class to serve, as `file.ts#Class`: a driver's relative to the package, an env's own relative to its folder. */
  readonly module: string;
  readonly settings: ComputerSettings;
}

/**
 * Checks all of an env that can be checked before anything is started: its alias, settings and packages, and the files that it
 * names. `environment` is where AGENTENV_COMPUTER_SETTINGS is read from. Throws a SetupError that names the file and the key.
 */
export function checkEnv(folder: string, file: EnvFile, environment: NodeJS.ProcessEnv): CheckedEnv {
  const source = resolve(folder, "env.toml");
  const module =
    file.type === "computer" ? driverModule(file.driver ?? "", `${source}: driver`) : ownModule(folder, file);
  requirePackages(file.apps?.packages ?? [], source);
  readDataFiles(folder, file.data?.files ?? {});
  requireOwnSkills(folder, file);
  return { module, settings: loadSettings(environment, file.settings) };
}

function ownModule(folder: string, { module = "" }: EnvFile): string {
  const [path = ""] = module.split("#", 1);
  if (leadsOut(folder, path)) {
    throw new SetupError(
      `${join(folder, "env.toml")}: module: ${JSON.stringify(module)} leads out of the env's folder`,
      {
        hint: "keep the class, and what it imports by a path, in the folder of env.toml",
      },
    );
  }
  if (statSync(join(folder, path), { throwIfNoEntry: false })?.isFile()) return module;
  throw new SetupError(`${join(folder, "env.toml")}: module: there is no file ${join(folder, path)}`, {
    hint: 'module = "file.ts#Class" is relative to the folder of env.toml; a class with decorators has to be built first',
  });
}

/** By its name or by a link: only the folder itself is copied for the session user, and put. */
function leadsOut(folder: string, path: string): boolean {
  const within = (file: string, of: string) => file.startsWith(`${of}${sep}`);
  if (!within(resolve(folder, path), resolve(folder))) return true;
  try {
    return !within(realpathSync(resolve(folder, path)), realpathSync(folder));
  } catch {
    // Nothing is there, which is said as such.
    return false;
  }
}

/** An env includes skills of its own folder, which its record holds as well, and digests: where it is put, nothing else is. */
function requireOwnSkills(folder: string, file: EnvFile): void {
  const own = resolve(folder) + sep;
  const outside = file.skills?.include.find(
    (entry) => !entry.startsWith("sha256:") && !`${resolve(folder, entry)}${sep}`.startsWith(own),
  );
  if (outside === undefined) return;
  throw new SetupError(
    `${join(folder, "env.toml")}: skills.include: ${JSON.stringify(outside)} lies outside of the env's folder`,
    { hint: "store it with `agentenv skills add`, and include its digest" },
  );
}
