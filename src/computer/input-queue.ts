import type { Caller } from "../environment/caller.js";
import { AgentEnvError } from "../errors.js";
import { cancelled } from "./deadline.js";

/** How many calls may wait for their turn. */
const MAX_WAITING = 256;

/** How much input every caller had delivered at one moment. */
export interface InputSnapshot {
  readonly total: number;
  readonly byCaller: ReadonlyMap<number, number>;
}

/** One call's time at the computer's input. */
export interface InputTurn {
  /** Says that input of the call has been delivered, or may have been. It counts once, when the turn is over. */
  delivered(): void;
  /**
   * Keeps the queue held until `work` has settled, also when the call is answered before, for input that goes on after its
   * call gave up. Whoever calls it sees to it that `work` settles.
   */
  outlast(work: Promise<unknown>): void;
}

interface Waiting {
  granted(): void;
}

/**
 * Input calls run one at a time, in the order in which they came, and what each caller delivered is counted, so that a result
 * can say how much input of others came after the frame it speaks of.
 */
export class InputQueue {
  #held = false;
  readonly #waiting = new Set<Waiting>();
  #total = 0;
  #byCaller = new Map<number, number>();
  /** The counts are handed out as they are and copied before the next change. */
  #shared = false;
  readonly #ids = new WeakMap<Caller, number>();
  #nextId = 1;

  constructor(private readonly maxWaiting = MAX_WAITING) {}

  /** Whether a call that came now would have to wait. */
  get busy(): boolean {
    return this.#held;
  }

  /** How many calls wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs `run` when it is this call's turn, and gives the turn back when it has settled, or later where the turn was made to
   * outlast it. Waiting ends with `input_busy` after `waitMs`, and with `limit_exceeded` where too many wait already; a wait
   * that is given up never leaves the queue held.
   */
  async turn<T>(caller: Caller, signal: AbortSignal, waitMs: number, run: (turn: InputTurn) => Promise<T>): Promise<T> {
    if (signal.aborted) throw cancelled();
    if (this.#held) {
      if (this.#waiting.size >= this.maxWaiting) {
        throw new AgentEnvError("limit_exceeded", `${this.maxWaiting} calls already wait for the computer's input`, {
          hint: "wait for some of them to be answered",
        });
      }
      await this.#granted(signal, waitMs);
    }
    this.#held = true;
    return this.#hold(() => this.count(caller), run);
  }

  /** A turn of the computer's own, to let go of what a caller left behind: it waits as long as it takes and isn't counted. */
  async ownTurn<T>(run: (turn: InputTurn) => Promise<T>): Promise<T> {
    if (this.#held) await new Promise<void>((granted) => this.#waiting.add({ granted }));
    this.#held = true;
    return this.#hold(() => {}, run);
  }

  async #hold<T>(count: () => void, run: (turn: InputTurn) => Promise<T>): Promise<T> {
    const outlasting: Promise<unknown>[] = [];
    let delivered = false;
    const turn: InputTurn = {
      delivered: () => {
        delivered = true;
      },
      outlast: (work) => {
        outlasting.push(work.catch(() => undefined));
      },
    };
    const over = () => {
      if (delivered) count();
      this.#next();
    };
    try {
      return await run(turn);
    } finally {
      if (outlasting.length === 0) over();
      else void settled(outlasting).then(over);
    }
  }

  #granted(signal: AbortSignal, waitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting = {
        granted: () => {
          leave();
          resolve();
        },
      };
      const onAbort = () => {
        leave();
        reject(cancelled());
      };
      const timer = setTimeout(() => {
        leave();
        reject(
          new AgentEnvError(
            "input_busy",
            `earlier input was not done after ${Math.round(waitMs / 100) / 10} s of waiting`,
            {
              hint: "nothing was sent; try again when the other input is done",
            },
          ),
        );
      }, waitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /** Hands the queue to the first that waits. It stays held meanwhile, so that a call that comes now can't slip in. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#held = false;
      return;
    }
    this.#waiting.delete(first);
    first.granted();
  }

  /** Counts one input of `caller` as delivered now; for input that takes no turn. */
  count(caller: Caller): void {
    this.#total += 1;
    if (caller.ended) return;
    let id = this.#ids.get(caller);
    if (id === undefined) {
      const own = this.#nextId++;
      id = own;
      this.#ids.set(caller, own);
      caller.onEnd(() => {
        this.#own().delete(own);
      });
    }
    const counts = this.#own();
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }

  #own(): Map<number, number> {
    if (this.#shared) {
      this.#byCaller = new Map(this.#byCaller);
      this.#shared = false;
    }
    return this.#byCaller;
  }

  snapshot(): InputSnapshot {
    this.#shared = true;
    return { total: this.#total, byCaller: this.#byCaller };
  }

  /** How many inputs of others than `caller` were delivered since `then`. */
  othersSince(then: InputSnapshot, caller: Caller): number {
    const id = this.#ids.get(caller) ?? 0;
    const own = (this.#byCaller.get(id) ?? 0) - (then.byCaller.get(id) ?? 0);
    return this.#total - then.total - Math.max(0, own);
  }
}

/** Resolves when all of `work` has settled, also what is added while it waits. */
async function settled(work: Promise<unknown>[]): Promise<void> {
  for (const each of work) await each;
}
