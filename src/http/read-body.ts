import type { IncomingMessage } from "node:http";

/**
 * Reads a request's body whole and calls `done` with it, or with undefined as soon as it is longer than `maxBytes`. A request
 * that breaks off has nobody left to be answered: `done` isn't called.
 */
export function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer | undefined) => void): void {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    done(undefined);
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxBytes) {
      chunks.push(chunk);
      return;
    }
    request.off("data", take).off("end", end).pause();
    chunks.length = 0;
    done(undefined);
  };
  const end = () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  request
    .on("data", take)
    .on("end", end)
    .on("error", () => {});
}
