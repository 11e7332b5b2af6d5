import { AgentEnvError, type Applied, messageOf } from "../../src/errors.js";
import { type DaemonReply, parseReply } from "./daemon-reply.js";
import type { Wire, WireUser } from "./wire.js";

const NEWLINE = 0x0a;
const LOOK_FIRST = "Look at what the desktop shows before you send it again.";

export interface ExchangeOptions {
  /** What is asked, for messages. */
  readonly what: string;
  /** One JSON request and its newline. */
  readonly line: string;
  /** Changes nothing, so that it isn't applied whatever becomes of it, and nobody waits for one that was cancelled. */
  readonly reads: boolean;
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
  /** A longer answer is refused. */
  readonly maxReplyBytes: number;
  /** Called when the connection is done with, however it ended. */
  readonly onOver?: (() => void) | undefined;
  /** Called when the request can't be sent. */
  readonly onUnreachable?: (() => void) | undefined;
  /** Called when the deadline passes without an answer. */
  readonly onDeadline?: (() => void) | undefined;
}

/**
 * One request and its one answer, on a connection of its own. The request is written once, never again: whatever fails
 * after that is told to the caller.
 */
export class Exchange implements WireUser {
  /**
   * Rejects with `device_unavailable` (nothing was sent), `delivery_failed` (sent, and no whole answer), `timeout` at the
   * deadline, or `internal` for an answer that isn't one.
   */
  readonly reply: Promise<DaemonReply>;
  readonly #wire: Wire;
  readonly #options: ExchangeOptions;
  readonly #timer: NodeJS.Timeout;
  #resolve!: (reply: DaemonReply) => void;
  #reject!: (error: AgentEnvError) => void;
  #chunks: Buffer[] = [];
  #size = 0;
  #progress: "waiting" | "writing" | "written" | "over" = "waiting";
  #settled: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(wire: Wire, options: ExchangeOptions) {
    this.#wire = wire;
    this.#options = options;
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(this.#onDeadline, options.deadlineMs);
    if (options.signal?.aborted) {
      this.#onAbort();
      return;
    }
    options.signal?.addEventListener("abort", this.#onAbort, { once: true });
    wire.use(this);
  }

  /**
   * Resolves when the daemon is done with the request as far as can be known: it answered, it is gone, or the deadline
   * passed. That may be after `reply` was rejected because the caller cancelled.
   */
  get settled(): Promise<void> {
    if (this.#progress === "over") return Promise.resolve();
    if (!this.#settled) {
      let resolve!: () => void;
      const promise = new Promise<void>((resolvePromise) => {
        resolve = resolvePromise;
      });
      this.#settled = { promise, resolve };
    }
    return this.#settled.promise;
  }

  opened(): void {
    this.#progress = "writing";
    this.#wire.write(this.#options.line);
  }

  written(): void {
    if (this.#progress === "writing") this.#progress = "written";
  }

  data(chunk: Buffer): void {
    const max = this.#options.maxReplyBytes;
    const at = chunk.indexOf(NEWLINE);
    this.#size += chunk.length;
    if (this.#size > max) this.#fail(this.#badReply(`it is longer than ${max} bytes`));
    else if (at < 0) this.#chunks.push(chunk);
    else if (at < chunk.length - 1) this.#fail(this.#badReply("it is more than one line"));
    else if (this.#chunks.length === 0) this.#answered(chunk.subarray(0, at));
    else this.#answered(Buffer.concat([...this.#chunks, chunk.subarray(0, at)]));
  }

  closed(error: NodeJS.ErrnoException | undefined): void {
    const sent = this.#progress === "written";
    this.#fail(sent ? this.#lost(error) : this.#unsent(error));
    if (!sent) this.#options.onUnreachable?.();
  }

  #answered(line: Buffer): void {
    try {
      this.#resolve(parseReply(line));
    } catch (thrown) {
      this.#reject(this.#badReply(messageOf(thrown)));
    }
    this.#over(true);
  }

  /** Until the whole line is in the kernel's hands the daemon has no request: it acts on whole lines alone. */
  #unsent(cause: Error | undefined): AgentEnvError {
    const message = `cua-driver's daemon can't be reached: ${this.#options.what} was not sent`;
    const hint = "The daemon is started again by itself. Try again in a second.";
    return new AgentEnvError("device_unavailable", message, { hint, cause });
  }

  #lost(cause: Error | undefined): AgentEnvError {
    const state = this.#size === 0 ? "without an answer" : "in the middle of its answer";
    const message = `cua-driver's daemon closed the connection ${state} to ${this.#options.what}`;
    return new AgentEnvError("delivery_failed", message, { hint: LOOK_FIRST, cause });
  }

  readonly #onDeadline = (): void => {
    const { what, deadlineMs, onDeadline } = this.#options;
    const applied = this.#unlessReads();
    this.#fail(
      new AgentEnvError("timeout", `cua-driver didn't answer ${what} within ${deadlineMs} ms`, {
        applied,
        ...(applied === "unknown" ? { hint: LOOK_FIRST } : {}),
      }),
    );
    onDeadline?.();
  };

  readonly #onAbort = (): void => {
    const applied = this.#unlessReads();
    const error = new AgentEnvError("delivery_failed", `${this.#options.what} was cancelled`, { applied });
    // Closing the connection wouldn't stop an input. It stays until the daemon is done, so that others can wait for that;
    // what the daemon answers then is thrown away with it.
    if (applied === "unknown") this.#reject(error);
    else this.#fail(error);
  };

  #unlessReads(): Applied {
    const sent = this.#progress === "writing" || this.#progress === "written";
    return sent && !this.#options.reads ? "unknown" : "no";
  }

  #badReply(why: string): AgentEnvError {
    return new AgentEnvError("internal", `cua-driver's answer to ${this.#options.what} can't be used: ${why}`);
  }

  #fail(error: AgentEnvError): void {
    this.#over();
    this.#reject(error);
  }

  #over(answered = false): void {
    this.#progress = "over";
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#chunks = [];
    if (answered) this.#wire.destroySoon();
    else this.#wire.destroy();
    this.#settled?.resolve();
    this.#options.onOver?.();
  }
}
