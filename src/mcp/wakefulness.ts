import { availableParallelism } from "node:os";

/** Waits that usually take longer than this many milliseconds are slept through. */
const SHORT_MS = 0.15;
/** How long a wait counts at most, so that one that is very long is forgotten soon. */
const LONGEST_MS = 4 * SHORT_MS;
/** About what sleeping costs: one that takes this much longer than usual is slept through from there on. */
const WAKE_MS = 0.06;

/** The waits of one kind in one session. */
interface Wait {
  /** When the one that is going on began, undefined for none that is measured. */
  since: number | undefined;
  /** How long they take of late, a moving average in milliseconds. */
  usual: number;
}

/**
 * Keeps the event loop awake over waits that are shorter than falling asleep and being woken: between two processors of a virtual
 * machine that takes about as long as forwarding a call does. Where the waits of a kind have been short, it looks for events again
 * and again instead of sleeping, for a little longer than they usually take, so that a client or a tool that takes its time costs
 * nothing. It does so for one call alone, since with several in the works the loop has enough to do, and not on a single
 * processor, where whoever is waited for couldn't run meanwhile.
 */
export class Wakefulness {
  #requests = 0;
  #until = 0;
  #looking = false;

  constructor(private readonly useful = availableParallelism() > 1) {}

  /** How many requests are being answered. */
  get requests(): number {
    return this.#requests;
  }

  /** Requests have come, which the client waits for now. */
  asked(requests: number, next: Wait, answer: Wait): void {
    this.#end(next);
    this.#requests += requests;
    if (this.#requests === 1) this.#begin(answer);
  }

  /** A request has been answered, or isn't wanted any more. */
  answered(next: Wait, answer: Wait): void {
    this.#requests -= 1;
    this.#end(answer);
    if (this.#requests === 0) this.#begin(next);
  }

  #begin(wait: Wait): void {
    if (!this.useful) return;
    const now = performance.now();
    wait.since = now;
    if (wait.usual > SHORT_MS) return;
    this.#until = now + wait.usual + WAKE_MS;
    if (this.#looking) return;
    this.#looking = true;
    setImmediate(this.#look);
  }

  #end(wait: Wait): void {
    this.#until = 0;
    if (wait.since === undefined) return;
    const took = Math.min(performance.now() - wait.since, LONGEST_MS);
    wait.usual += (took - wait.usual) / 8;
    wait.since = undefined;
  }

  /** What is due in the next turn of the loop keeps it from sleeping in this one. */
  readonly #look = (): void => {
    this.#looking = performance.now() < this.#until;
    if (this.#looking) setImmediate(this.#look);
  };
}

/** The waits of one session: the client's for an answer, and the server's for the next request. */
export class Turns {
  readonly #answer: Wait = { since: undefined, usual: LONGEST_MS };
  readonly #next: Wait = { since: undefined, usual: LONGEST_MS };

  constructor(private readonly loop: Wakefulness) {}

  asked(requests: number): void {
    this.loop.asked(requests, this.#next, this.#answer);
  }

  answered(): void {
    this.loop.answered(this.#next, this.#answer);
  }
}
