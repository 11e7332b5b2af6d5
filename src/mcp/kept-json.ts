import { RawJson } from "../protocol/raw-json.js";

/** How many texts are kept: one for each way in which callers see the tools. */
const MAX_KEPT = 16;

const kept = new Map<string, RawJson>();

/** JSON text that is sent over and over, with the bytes that it is sent as, which are made once. */
export function keptJson(text: string): RawJson {
  let json = kept.get(text);
  if (json === undefined) {
    json = new RawJson(["", Buffer.from(text, "utf8"), ""]);
    const [oldest] = kept.keys();
    if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    kept.set(text, json);
  }
  return json;
}
