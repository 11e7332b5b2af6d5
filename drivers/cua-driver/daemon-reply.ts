import { isUtf8 } from "node:buffer";
import { RawJson } from "../../src/protocol/raw-json.js";

/** A picture, or other bytes, that the daemon sent. */
export interface Picture {
  /** Base64 as it came, in ASCII. */
  readonly base64: Buffer;
  readonly bytes: Buffer;
}

/** What the daemon answers one request; or its refusal, which is an answer too. */
export type DaemonReply =
  | {
      readonly ok: true;
      /** `result` as the daemon wrote it. */
      readonly json: RawJson;
      /** `result` parsed, but that the long base64 strings in it are empty: they are `pictures`, in their order. */
      readonly value: unknown;
      readonly pictures: readonly Picture[];
    }
  | { readonly ok: false; readonly error: string; readonly exitCode: number };

const START = '{"ok":true,"result":';
const START_BYTES = Buffer.from(START);
/** Lines from this length on are looked through for pictures, and are sent on as bytes. */
const LONG_LINE = 16 << 10;
const LONG_BASE64 = 4 << 10;

/**
 * Reads one line of the daemon, without its newline. Throws an Error that says what is wrong with a line that isn't JSON or
 * is of another shape.
 */
export function parseReply(line: Buffer): DaemonReply {
  if (!isUtf8(line)) throw new Error("it isn't UTF-8");
  const isLong = line.length >= LONG_LINE;
  const { text, pictures } = isLong ? withoutPictures(line) : { text: line.toString("utf8"), pictures: [] };
  if (text.startsWith(START) && text.endsWith("}")) {
    // The usual case: `result` is cut out as it stands. Where that isn't one JSON value, the line isn't of this form.
    const result = text.slice(START.length, -1);
    const value = parsed(result);
    if (value !== undefined) {
      const json = new RawJson(isLong ? ["", line.subarray(START_BYTES.length, -1), ""] : result);
      return { ok: true, json, value, pictures };
    }
  }
  const reply = parsed(line.toString("utf8"));
  if (reply === undefined) throw new Error("it isn't JSON");
  if (typeof reply === "object" && reply !== null && "ok" in reply) {
    if (reply.ok === true && "result" in reply) {
      return { ok: true, json: new RawJson(JSON.stringify(reply.result)), value: reply.result, pictures: [] };
    }
    if (reply.ok === false && "error" in reply && typeof reply.error === "string") {
      const exitCode = "exit_code" in reply && typeof reply.exit_code === "number" ? reply.exit_code : 1;
      return { ok: false, error: reply.error, exitCode };
    }
  }
  throw new Error("it is neither a result nor a refusal");
}

const DATA = Buffer.from('"data":"');
const QUOTE = 0x22;

/**
 * The line's text with its pictures left out. They are nearly all of a line, and a string of them would be made, parsed and
 * serialised for nothing. A quote within a JSON string has a backslash before it, so `"data":"` always begins a string, and
 * what is base64 up to the next quote is the whole of it.
 */
function withoutPictures(line: Buffer): { text: string; pictures: Picture[] } {
  const pictures: Picture[] = [];
  let text = "";
  let done = 0;
  for (let at = line.indexOf(DATA); at !== -1; at = line.indexOf(DATA, at + DATA.length)) {
    const start = at + DATA.length;
    const end = line.indexOf(QUOTE, start);
    if (end - start < LONG_BASE64) continue;
    const picture = pictureOf(line.subarray(start, end));
    if (picture === undefined) continue;
    pictures.push(picture);
    text += line.toString("utf8", done, start);
    done = end;
  }
  return { text: text + line.toString("utf8", done), pictures };
}

function pictureOf(base64: Buffer): Picture | undefined {
  const bytes = Buffer.from(base64.toString("latin1"), "base64");
  // The decoder skips what isn't base64, which leaves less than such a text holds.
  const padding = base64.at(-1) !== PAD ? 0 : base64.at(-2) !== PAD ? 1 : 2;
  return base64.length % 4 === 0 && bytes.length === (base64.length / 4) * 3 - padding ? { base64, bytes } : undefined;
}

const PAD = "=".charCodeAt(0);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
