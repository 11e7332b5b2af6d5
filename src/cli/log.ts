import { closeSync, openSync } from "node:fs";
import { destination, type Logger, pino, stdSerializers } from "pino";
import pretty from "pino-pretty";
import { SetupError } from "../errors.js";

/** pino's JSON to a file or to standard error; lines that people read where standard error is a terminal. */
export function createLog({ level, file }: { level: string; file?: string }): Logger {
  const options = { level, serializers: { err: withoutPacket } };
  if (file !== undefined) {
    try {
      closeSync(openSync(file, "a"));
      return pino(options, destination({ dest: file, sync: true, mkdir: false }));
    } catch (thrown) {
      throw new SetupError(`the log file ${file} can't be written`, {
        hint: "the server runs as the session user: name a file that it may write",
        cause: thrown,
      });
    }
  }
  if (process.stderr.isTTY) return pino(options, pretty({ destination: 2, sync: true, ignore: "pid,hostname" }));
  return pino(options, destination({ dest: 2, sync: true }));
}

/** Node gives an error of its HTTP parser the bytes that it was reading: tokens and typed text may be in them. */
function withoutPacket(error: Error): object {
  const { rawPacket: _, ...rest } = stdSerializers.err(error) as object & { rawPacket?: unknown };
  return rest;
}
