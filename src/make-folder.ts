import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a folder and those above it that are missing, and answers the topmost that was made, undefined where it was there
 * already. Throws as Node's `mkdir` does. Node's own recursive one never ends where a folder that is there answers ENOENT to
 * every new one, as `/proc` does: here each folder is tried once.
 */
export function makeFolder(folder: string, mode = 0o777): string | undefined {
  if (isFolder(folder)) return undefined;
  const missing = [resolve(folder)];
  let above = dirname(resolve(folder));
  while (statSync(above, { throwIfNoEntry: false }) === undefined && above !== dirname(above)) {
    missing.unshift(above);
    above = dirname(above);
  }
  let first: string | undefined;
  for (const each of missing) {
    try {
      mkdirSync(each, { mode });
      first ??= each;
    } catch (thrown) {
      // Somebody else may have been quicker.
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST" || !isFolder(each)) throw thrown;
    }
  }
  return first;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
