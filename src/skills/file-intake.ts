import { SetupError } from "../errors.js";
import { PathSet, pathFault } from "./paths.js";
import { shownPath } from "./refused.js";

export interface IntakeLimits {
  readonly files: number;
  /** Of all files together. */
  readonly bytes: number;
}

/** Takes in the files of one folder, whatever they come from, and refuses what no folder of ours may hold. */
export class FileIntake {
  readonly #paths = new PathSet();
  readonly #contents = new Map<string, Buffer>();
  #bytes = 0;

  constructor(
    /** Where the files come from, for messages. */
    readonly origin: string,
    readonly limits: IntakeLimits,
    /** What the files make, for messages. */
    readonly what: string,
  ) {}

  /** What was put, by path. */
  get contents(): ReadonlyMap<string, Buffer> {
    return this.#contents;
  }

  /** Checks a file before its content is read. Answers the path to `put` it under: the same in Unicode form C. */
  admit(found: string, size: number): string {
    this.checkPath(found);
    const path = found.normalize("NFC");
    const clash = this.#paths.add(found);
    if (clash !== undefined) throw this.refuse(found, clash);
    if (this.#contents.size >= this.limits.files)
      throw this.refuse(found, `is one file more than ${this.limits.files}`);
    this.#bytes += size;
    if (!Number.isSafeInteger(size) || size < 0 || this.#bytes > this.limits.bytes) {
      throw this.refuse(found, `takes the ${this.what} over ${this.limits.bytes} bytes (it has ${size})`);
    }
    this.#contents.set(path, Buffer.alloc(0));
    return path;
  }

  put(path: string, bytes: Buffer): void {
    this.#contents.set(path, bytes);
  }

  checkPath(found: string): void {
    const fault = pathFault(found);
    if (fault !== undefined) throw this.refuse(found, fault);
  }

  refuse(path: string, reason: string, options: { hint?: string; cause?: unknown } = {}): SetupError {
    return new SetupError(`${this.origin}: ${shownPath(path)} ${reason}`, options);
  }
}
