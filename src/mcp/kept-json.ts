import { RawJson } from "../protocol/raw-json.js";

/** How many texts are kept: one for each way in which callers see the tools. */
const MAX_KEPT = 16;

const kept = new Map<string, RawJson>();

/** JSON text that is sent over and over: the bytes that it is sent as are made now, once. */
export function asBytes(text: string): RawJson {
  return new RawJson(["", Buffer.from(text, "utf8"), ""]);
}

/** The same for a text that is made elsewhere, and kept here. */
export function keptJson(text: string): RawJson {
  let json = kept.get(text);
  if (json === undefined) {
    json = asBytes(text);
    const [oldest] = kept.keys();
    if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    kept.set(text, json);
  }
  return json;
}
