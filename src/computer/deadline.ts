import { AgentEnvError } from "../errors.js";

/** A call of ours answers by then, before the transport gives up on it (120 s). */
export const CALL_DEADLINE_MS = 110_000;
/** Input whose arguments need longer than this is refused before anything is sent. */
export const MAX_INPUT_MS = 100_000;
/** How long an operation that was told to stop may take to say how far it came. */
const LAST_WORDS_MS = 1_000;

/** A signal that is aborted when the caller gives up or after `ms`, whichever comes first. Whoever makes it disposes of it. */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #given: () => void;
  #passed = false;

  constructor(
    private readonly outer: AbortSignal,
    readonly ms: number,
  ) {
    this.#given = () => this.#controller.abort(outer.reason);
    this.#timer = setTimeout(() => {
      this.#passed = true;
      this.#controller.abort(new Error(`${ms} ms have passed`));
    }, ms);
    if (outer.aborted) this.#given();
    else outer.addEventListener("abort", this.#given, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was the time that ran out, and not the caller who gave up. */
  get passed(): boolean {
    return this.#passed;
  }

  /** What `work` comes to, unless it has not stopped a moment after it was told to; then the signal's reason is thrown. */
  bound<T>(work: Promise<T>): Promise<T> {
    return unlessAborted(work, this.signal, Math.min(LAST_WORDS_MS, this.ms / 10));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.outer.removeEventListener("abort", this.#given);
  }
}

/**
 * What `work` comes to. Once `signal` is aborted it has a moment to settle by itself; work that doesn't is left behind, and
 * the signal's reason is thrown.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, momentMs = 0): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let moment: NodeJS.Timeout | undefined;
    const given = () => {
      moment = setTimeout(() => settle(() => reject(signal.reason)), momentMs);
    };
    const settle = (how: () => void) => {
      clearTimeout(moment);
      signal.removeEventListener("abort", given);
      how();
    };
    if (signal.aborted) given();
    else signal.addEventListener("abort", given, { once: true });
    work.then(
      (value) => settle(() => resolve(value)),
      (thrown) => settle(() => reject(thrown)),
    );
  });
}

/** Whether `work` has settled within `ms`; it goes on where it hasn't. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const settled = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The refusal of a call that was given up before anything was sent; nobody may be left to read it. */
export function cancelled(): AgentEnvError {
  return new AgentEnvError("timeout", "the call was given up before anything was done", { applied: "no" });
}
