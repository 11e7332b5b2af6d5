import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";

const KEPT_LINES = 50;
const MAX_LINE = 2000;
/** What a dead program wrote last is read within this time; who else still holds its output is not listened to. */
const DRAIN_MS = 100;

/** The last 50 lines that a program wrote, over all its lives, without colours; a line is cut at 2,000 characters. */
export class LastLines {
  readonly #lines: string[] = [];

  get all(): readonly string[] {
    return [...this.#lines];
  }

  /** Reads a child's stdout and stderr until it has ended. */
  follow(child: ChildProcess, onLine: (line: string) => void): void {
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      this.#read(stream, onLine);
      child.once("exit", () => setTimeout(() => stream.destroy(), DRAIN_MS).unref());
    }
  }

  #read(stream: Readable, onLine: (line: string) => void): void {
    let rest = "";
    const add = (line: string) => {
      if (line === "") return;
      this.#lines.push(line);
      if (this.#lines.length > KEPT_LINES) this.#lines.shift();
      onLine(line);
    };
    stream.setEncoding("utf8");
    stream.on("error", () => {});
    stream.on("data", (chunk: string) => {
      const lines = (rest + chunk).split(/[\r\n]+/);
      rest = lines.pop() ?? "";
      for (const line of lines) add(stripVTControlCharacters(line.slice(0, MAX_LINE)));
      while (rest.length > MAX_LINE) {
        add(rest.slice(0, MAX_LINE));
        rest = rest.slice(MAX_LINE);
      }
    });
    stream.on("end", () => add(rest));
  }
}
