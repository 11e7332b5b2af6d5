import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parse } from "smol-toml";
import { closest } from "../closest.js";
import { SetupError } from "../errors.js";
import { packageRoot } from "../package-root.js";
import { notLoaded } from "./not-loaded.js";

const ALIASES = join("bundles", "drivers", "aliases.toml");

/** The aliases that `driver = "…"` takes: name → `file.ts#Class`, relative to the package. */
export function readAliases(): Map<string, string> {
  return new Map(Object.entries(parse(readFileSync(join(packageRoot, ALIASES), "utf8")) as Record<string, string>));
}

/**
 * The `file.ts#Class` behind a driver's alias; one that there isn't is a SetupError naming those that there are, and `where` it
 * was read.
 */
export function driverModule(alias: string, where = ""): string {
  const aliases = readAliases();
  const module = aliases.get(alias);
  if (module === undefined) {
    const names = [...aliases.keys()];
    const near = closest(alias, names);
    throw new SetupError(`${where === "" ? "" : `${where}: `}no driver is called ${JSON.stringify(alias)}`, {
      hint: `${near === undefined ? "" : `did you mean "${near}"? `}${ALIASES} names ${names.join(", ")}`,
    });
  }
  return module;
}

/**
 * Loads the class that `file.ts#Class` names, relative to `folder`. A TypeScript file of this package is loaded as it was
 * built; one of a folder elsewhere is loaded by Node itself, which takes TypeScript without decorators. Where `folder` is a
 * copy, `source` is the folder that its author knows. Throws a SetupError that names the author's file, and the line.
 */
export async function loadClass(
  folder: string,
  module: string,
  source = folder,
): Promise<new (...args: never[]) => object> {
  const [path = "", name = ""] = module.split("#", 2);
  const file = builtFile(join(folder, path));
  if (!existsSync(file)) {
    throw new SetupError(`there is no file ${file.replace(folder, source)}, which ${JSON.stringify(module)} names`, {
      hint: 'module = "file.ts#Class" is relative to the folder of env.toml',
    });
  }
  let loaded: Record<string, unknown>;
  try {
    loaded = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (thrown) {
    throw notLoaded(thrown, { file, folder, source });
  }
  const found = loaded[name];
  if (typeof found !== "function") {
    throw new SetupError(`${file.replace(folder, source)} exports no class ${name}`, {
      hint: `it exports ${Object.keys(loaded).join(", ") || "nothing"}`,
    });
  }
  return found as new (
    ...args: never[]
  ) => object;
}

/** Where this package's own modules lie: beside this one, so in the build when this one was built. */
const modulesRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Whether a class comes with this package, built: `file.ts#Class` of one of its own folders. */
export function isBuiltHere(folder: string, module: string): boolean {
  const [path = ""] = module.split("#", 1);
  const file = join(folder, path);
  return builtFile(file) !== file;
}

function builtFile(file: string): string {
  if (modulesRoot === packageRoot || !file.startsWith(`${packageRoot}/`)) return file;
  return join(modulesRoot, file.slice(packageRoot.length)).replace(/\.ts$/, ".js");
}
