import { SetupError } from "../errors.js";

const MAX_SHOWN = 120;

/** A folder, tar or answer that is no skill, or a hostile one: which of its files, and why. Nothing of it was kept. */
export class SkillRefused extends SetupError {
  constructor(
    /** Where the skill came from: a folder, a file, an address. */
    readonly origin: string,
    /** The offending path, relative to the skill, as it was found. */
    readonly path: string,
    /** Why, to be read after the path: "is a FIFO". */
    readonly reason: string,
    options: { hint?: string; cause?: unknown } = {},
  ) {
    super(`${origin}: ${shownPath(path)} ${reason}`, options);
  }
}

/** A path for a message: what could move a terminal's cursor is escaped, and a very long one is cut. */
export function shownPath(path: string): string {
  const cut = path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}… (${path.length} characters)` : path;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return `\\u{${point.toString(16)}}`;
  });
}
