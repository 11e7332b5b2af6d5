/** In bytes, as UTF-8. What fits is a legal name on common file systems and a legal end of an S3 key. */
const MAX_SEGMENT = 255;
const MAX_PATH = 1024;

/** Why a path can't name a file of a skill, undefined where it can. */
export function pathFault(path: string): string | undefined {
  if (path === "") return "is an empty path";
  if (path.includes("\0")) return "holds a NUL";
  if (!path.isWellFormed()) return "is not valid Unicode";
  if (/^\/|^[A-Za-z]:/.test(path)) return "is an absolute path";
  if (path.includes("\\")) return "holds a backslash, which is a separator elsewhere";
  if (/\p{Cc}/u.test(path)) return "holds a control character";
  const segments = path.split("/");
  if (segments.includes("..")) return "leaves its folder with ..";
  if (segments.includes("") || segments.includes(".")) return "has an empty or . part";
  if (segments.some((segment) => Buffer.byteLength(segment) > MAX_SEGMENT)) {
    return `has a name longer than ${MAX_SEGMENT} bytes`;
  }
  if (Buffer.byteLength(path) > MAX_PATH) return `is a path longer than ${MAX_PATH} bytes`;
  return undefined;
}

/**
 * The paths of one skill, told apart as the least discerning file system does: two that differ in case or Unicode form
 * alone would be one file, or one folder, there.
 */
export class PathSet {
  /** From the folded form of each file and each folder above one to what it is. */
  readonly #taken = new Map<string, { path: string; folder: boolean }>();

  /** Takes a file's path in. Answers what it clashes with, to be read after the path, undefined where nothing does. */
  add(path: string): string | undefined {
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) {
      const fault = this.#take(path.slice(0, at), true);
      if (fault !== undefined) return fault;
    }
    return this.#take(path, false);
  }

  #take(path: string, folder: boolean): string | undefined {
    const folded = fold(path);
    const there = this.#taken.get(folded);
    if (there === undefined) {
      this.#taken.set(folded, { path, folder });
      return undefined;
    }
    if (there.path !== path) return `differs from ${there.path} in case or Unicode form alone`;
    if (there.folder && folder) return undefined;
    return there.folder || folder ? "is a file and a folder" : "is there twice";
  }
}

/** Upper, then lower: so that ſ and s, ς and σ, the Kelvin sign and k fall together too. */
function fold(path: string): string {
  return path.normalize("NFD").toUpperCase().toLowerCase().normalize("NFC");
}
