import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { canonicalJson } from "../../src/protocol/canonical-json.js";

/** SHA-256 in lower-case hexadecimal; a string counts as UTF-8. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** SHA-256 of a JSON value's canonical text. */
export function jsonSha256(value: unknown): string {
  return sha256(canonicalJson(value));
}

/** SHA-256 of a file of any size, and its size in bytes. */
export async function fileDigest(file: string, signal?: AbortSignal): Promise<{ sha256: string; size: number }> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20, ...(signal ? { signal } : {}) })) {
    hash.update(chunk as Buffer);
    size += (chunk as Buffer).length;
  }
  return { sha256: hash.digest("hex"), size };
}
