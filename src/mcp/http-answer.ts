import type { ServerResponse } from "node:http";
import type { MessageText } from "./wire.js";

/** How often an open event stream says that it lives, so that nothing between the two ends closes it. */
const KEEP_ALIVE_MS = 15_000;
/** A client that reads its event stream slower than this much is written to it is disconnected. */
const MAX_UNREAD_BYTES = 64 << 20;

/** Answers with a JSON body, or with none where it is empty. */
export function answer(response: ServerResponse, status: number, body: MessageText, sessionId?: string): void {
  if (response.headersSent || response.destroyed) return;
  const session = sessionId === undefined ? {} : { "mcp-session-id": sessionId };
  if (body === "") {
    response.writeHead(status, { ...session, "content-length": 0 }).end();
    return;
  }
  if (typeof body !== "string") {
    const [before, bytes, after] = body;
    const length = Buffer.byteLength(before) + bytes.length + Buffer.byteLength(after);
    response.writeHead(status, { "content-type": "application/json", "content-length": length, ...session });
    // Together they go out in one write.
    response.cork();
    response.write(before);
    response.write(bytes);
    response.end(after);
    response.uncork();
    return;
  }
  // The body as a string goes out with the head in one write; as bytes it would take a second one.
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...session })
    .end(body);
}

/** Begins an event stream. */
export function startStream(response: ServerResponse, sessionId: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    "mcp-session-id": sessionId,
  });
  response.flushHeaders();
  const keepAlive = setInterval(() => write(response, ": alive\n\n"), KEEP_ALIVE_MS).unref();
  response.once("close", () => clearInterval(keepAlive));
}

/** Writes to an event stream, unless its client is gone. */
export function write(response: ServerResponse, text: string): void {
  if (response.destroyed || response.writableEnded) return;
  response.write(text);
  if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
}
