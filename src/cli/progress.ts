const WIDTH = 24;
/** Below this many steps a bar is gone before it is seen. */
const FEW = 16;
const EVERY_MS = 50;

/**
 * One line on standard error that says how far a long command is, rewritten in place and taken away at the end. Draws
 * nothing where standard error is no terminal.
 */
export class ProgressBar implements Disposable {
  #drawn = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly label: string,
    private readonly stream: NodeJS.WriteStream = process.stderr,
  ) {}

  /** Bound, so that it can be handed over as it is. */
  readonly update = (done: number, total: number): void => {
    const now = performance.now();
    if (!this.stream.isTTY || total < FEW || (now - this.#drawn < EVERY_MS && done < total)) return;
    this.#drawn = now;
    const full = Math.round((done / total) * WIDTH);
    this.stream.write(`\r\x1b[K${this.label} [${"#".repeat(full)}${".".repeat(WIDTH - full)}] ${done}/${total}`);
  };

  [Symbol.dispose](): void {
    if (this.#drawn > 0) this.stream.write("\r\x1b[K");
  }
}
