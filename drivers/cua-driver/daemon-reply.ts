import { isUtf8 } from "node:buffer";

/**
 * What the daemon answers one request: `result` as the JSON text that it sent, and as a value; or its refusal, which is an
 * answer too.
 */
export type DaemonReply =
  | { readonly ok: true; readonly text: string; readonly value: unknown }
  | { readonly ok: false; readonly error: string; readonly exitCode: number };

const START = '{"ok":true,"result":';

/**
 * Reads one line of the daemon, without its newline. Throws an Error that says what is wrong with a line that isn't JSON or
 * is of another shape.
 */
export function parseReply(line: Buffer): DaemonReply {
  if (!isUtf8(line)) throw new Error("it isn't UTF-8");
  const text = line.toString("utf8");
  if (text.startsWith(START) && text.endsWith("}")) {
    // The usual case: `result` is cut out as it stands. Where that isn't one JSON value, the line isn't of this form.
    const result = text.slice(START.length, -1);
    const value = parsed(result);
    if (value !== undefined) return { ok: true, text: result, value };
  }
  const reply = parsed(text);
  if (reply === undefined) throw new Error("it isn't JSON");
  if (typeof reply === "object" && reply !== null && "ok" in reply) {
    if (reply.ok === true && "result" in reply) {
      return { ok: true, text: JSON.stringify(reply.result), value: reply.result };
    }
    if (reply.ok === false && "error" in reply && typeof reply.error === "string") {
      const exitCode = "exit_code" in reply && typeof reply.exit_code === "number" ? reply.exit_code : 1;
      return { ok: false, error: reply.error, exitCode };
    }
  }
  throw new Error("it is neither a result nor a refusal");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
