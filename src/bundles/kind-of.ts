import { lstatSync, statSync } from "node:fs";

/**
 * What lies at a path, links followed, as a message calls it. Undefined where nothing does, or nothing that can be looked at.
 */
export function kindOf(path: string): "folder" | "file" | "broken link" | "special file" | undefined {
  try {
    const found = statSync(path);
    return found.isDirectory() ? "folder" : found.isFile() ? "file" : "special file";
  } catch {
    return isLink(path) ? "broken link" : undefined;
  }
}

export function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}
