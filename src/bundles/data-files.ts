import { readFileSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { DATA_OBJECTS_URN, type FilePart, RelativePath } from "../protocol/data-plane.js";

/**
 * The files that an env brings, as `data/add` takes them: `[data] files` maps each path in the session user's home to a file of
 * the env's folder. One that can't be read, or isn't in the folder, is a SetupError that names it.
 */
export function readDataFiles(folder: string, files: Readonly<Record<string, string>>): FilePart[] {
  return Object.entries(files).map(([path, source]) => {
    const where = `${join(folder, "env.toml")}: data.files.${JSON.stringify(path)}`;
    if (!RelativePath.safeParse(path).success) {
      throw new SetupError(`${where}: not a path in the session user's home`, {
        hint: "write it relative to the home, with forward slashes and without `.` or `..`",
      });
    }
    try {
      const real = realpathSync(join(folder, source));
      if (!real.startsWith(`${realpathSync(folder)}${sep}`) || !statSync(real).isFile()) {
        throw new Error("it is no file in the env's folder");
      }
      const bytes = readFileSync(real).toString("base64");
      return { kind: "file", file: { bytes }, metadata: { [DATA_OBJECTS_URN]: { path } } };
    } catch (thrown) {
      throw new SetupError(`${where}: ${JSON.stringify(source)} can't be read: ${messageOf(thrown)}`, {
        hint: "name a file of the env's own folder, relative to it",
        cause: thrown,
      });
    }
  });
}
