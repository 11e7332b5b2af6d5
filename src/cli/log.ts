import { destination, type Logger, pino } from "pino";
import pretty from "pino-pretty";
import { SetupError } from "../errors.js";

/** pino's JSON to a file or to standard error; lines that people read where standard error is a terminal. */
export function createLog({ level, file }: { level: string; file?: string }): Logger {
  if (file !== undefined) {
    try {
      return pino({ level }, destination({ dest: file, sync: true, mkdir: false }));
    } catch (thrown) {
      throw new SetupError(`the log file ${file} can't be written`, {
        hint: "the server runs as the session user: name a file that it may write",
        cause: thrown,
      });
    }
  }
  if (process.stderr.isTTY) return pino({ level }, pretty({ destination: 2, sync: true, ignore: "pid,hostname" }));
  return pino({ level }, destination({ dest: 2, sync: true }));
}
