import type { IncomingMessage } from "node:http";

/**
 * Reads a request's body whole and calls `done` with it, or with undefined as soon as it is longer than `maxBytes`. A request
 * that breaks off has nobody left to be answered: `done` isn't called.
 */
export function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer | undefined) => void): void {
  const { "content-length": length } = request.headers;
  if (length === undefined) {
    gather(request, maxBytes, done);
    return;
  }
  const announced = Number(length);
  if (announced > maxBytes) {
    done(undefined);
    return;
  }
  // A short body comes with its head, and is there whole a turn later: taken at once it needs none of the stream's events.
  process.nextTick(() => {
    const chunk = request.read() as Buffer | null;
    if (chunk?.length === announced) {
      done(chunk);
      request.resume();
      return;
    }
    if (chunk !== null) request.unshift(chunk);
    gather(request, maxBytes, done);
  });
}

function gather(request: IncomingMessage, maxBytes: number, done: (body: Buffer | undefined) => void): void {
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
