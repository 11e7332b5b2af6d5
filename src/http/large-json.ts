import { endOfString } from "../protocol/json-bounds.js";

/** A string literal of this many bytes or more is kept out of the text that is parsed. */
const LARGE_BYTES = 1 << 20;
/** A body that is shorter than this is parsed the usual way. */
const USUAL_BYTES = 64 << 20;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MARK = "\u0000large:";

/**
 * JSON.parse for a body that may be larger than the longest string that the engine can hold (512 MiB). A string value of a
 * megabyte or more, such as a file in base64, comes out as a Buffer of its bytes, a view into `body`.
 */
export function parseLargeJson(body: Buffer): unknown {
  if (body.length < USUAL_BYTES) return JSON.parse(body.toString("utf8"));
  const { text, large } = withoutLargeStrings(body);
  return JSON.parse(text, (_key, value) =>
    typeof value === "string" && value.startsWith(MARK) ? (large[Number(value.slice(MARK.length))] ?? value) : value,
  );
}

function withoutLargeStrings(body: Buffer): { text: string; large: Buffer[] } {
  const large: Buffer[] = [];
  const kept: string[] = [];
  let from = 0;
  let at = body.indexOf(QUOTE);
  while (at !== -1) {
    const end = endOfString(body, at);
    if (end === body.length) break;
    const content = body.subarray(at + 1, end);
    if (content.length >= LARGE_BYTES && !content.includes(BACKSLASH)) {
      kept.push(body.toString("utf8", from, at), JSON.stringify(`${MARK}${large.length}`));
      large.push(content);
      from = end + 1;
    }
    at = body.indexOf(QUOTE, end + 1);
  }
  kept.push(body.toString("utf8", from));
  return { text: kept.join(""), large };
}
