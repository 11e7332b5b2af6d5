import { RawJson } from "../protocol/raw-json.js";

/** How many texts are kept: one for each way in which callers see the tools. */
const MAX_KEPT = 16;

/** JSON text that is sent over and over, with the bytes that it is sent as. */
export class KeptJson extends RawJson {
  readonly bytes: Buffer;

  constructor(text: string) {
    super(text);
    this.bytes = Buffer.from(text, "utf8");
  }
}

const kept = new Map<string, KeptJson>();

/** The text with its bytes, made once. */
export function keptJson(text: string): KeptJson {
  let json = kept.get(text);
  if (json === undefined) {
    json = new KeptJson(text);
    const [oldest] = kept.keys();
    if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    kept.set(text, json);
  }
  return json;
}
