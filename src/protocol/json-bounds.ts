import { isUtf8 } from "node:buffer";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

export interface JsonBounds {
  /** How deep arrays and objects may lie in each other. */
  readonly depth: number;
  /** How many values there may be. */
  readonly values: number;
}

/** For what is parsed and walked in one go while every other caller waits. */
export const CALL_BOUNDS: JsonBounds = { depth: 256, values: 250_000 };
/** For data that an environment is seeded with. */
export const DATA_BOUNDS: JsonBounds = { depth: 256, values: 5_000_000 };

/**
 * Why a body should not be parsed as JSON, undefined when it may be: it isn't UTF-8, or it is so deep or has so many values
 * that the server would be at it for seconds. Strings are skipped over, so a large file in base64 costs next to nothing.
 */
export function jsonProblem(body: Buffer, bounds: JsonBounds): string | undefined {
  if (!isUtf8(body)) return "it is not UTF-8";
  // JSON of that depth has as many brackets that close as open; a text too short for them breaks neither bound.
  if (body.length <= 2 * bounds.depth && body.length <= bounds.values) return undefined;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < body.length; at += 1) {
    switch (body[at]) {
      case QUOTE:
        at = endOfString(body, at);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        values += 1;
        if (depth > bounds.depth) return `it is nested more than ${bounds.depth} deep`;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
      case COMMA:
        values += 1;
        break;
    }
    if (values > bounds.values) return `it has more than ${bounds.values} values`;
  }
  return undefined;
}

/** Where the string that opens at `start` closes: at the first quote that an even number of backslashes precedes. */
export function endOfString(body: Buffer, start: number): number {
  let end = body.indexOf(QUOTE, start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (body[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = body.indexOf(QUOTE, end + 1);
  }
  return body.length;
}
