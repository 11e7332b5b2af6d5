import { AgentEnvError } from "../errors.js";

/** How much is decoded at a time; a multiple of 4, so that groups stay whole. */
const CHUNK = 4 << 20;

/**
 * Decodes base64 piece by piece, so that what is as large as a body may be is in memory once. Throws `invalid_argument` for
 * anything but the standard alphabet and its padding.
 */
export function* decodeBase64(encoded: string | Buffer): Generator<Buffer> {
  const wrong = () => new AgentEnvError("invalid_argument", "the file's bytes are not base64");
  if (encoded.length % 4 !== 0) throw wrong();
  for (let at = 0; at < encoded.length; at += CHUNK) {
    const piece =
      typeof encoded === "string"
        ? encoded.slice(at, at + CHUNK)
        : encoded.toString("latin1", at, Math.min(at + CHUNK, encoded.length));
    const isLast = at + CHUNK >= encoded.length;
    if (!(isLast ? /^[A-Za-z0-9+/]*={0,2}$/ : /^[A-Za-z0-9+/]*$/).test(piece)) throw wrong();
    yield Buffer.from(piece, "base64");
  }
}
