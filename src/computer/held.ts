import type { Caller } from "../environment/caller.js";
import { settledWithin } from "./deadline.js";
import type { InputQueue } from "./input-queue.js";
import type { ComputerLog } from "./log.js";

/** How often a release that fails is tried, and how long apart. */
const TRIES = 5;
const TRY_AGAIN_MS = 1_000;

/** How long the end of a caller waits for its release, which goes on after that. */
const END_MS = 1_000;

/** One press of items, which go together when their time is over. */
interface Press {
  timer: NodeJS.Timeout | undefined;
}

interface Holding<Item> {
  /** In the order in which they were pressed, each with its last press. */
  readonly items: Map<Item, Press>;
  /** Takes back what `onEnd` was given. */
  forgetCaller(): void;
}

/**
 * What callers hold down: keys, or buttons. Each caller's are released when the caller ends, and after a while where there is
 * a longest time; waiting for the input queue as long as it takes. What another caller still holds stays down.
 */
export class Held<Item extends string> {
  readonly #holding = new Map<Caller, Holding<Item>>();

  constructor(
    private readonly what: string,
    private readonly queue: InputQueue,
    private readonly log: ComputerLog,
    /** Releases items in order. */
    private readonly release: (items: readonly Item[]) => Promise<unknown>,
    /** The longest that something is held, in milliseconds; asked whenever something is pressed. */
    private readonly maxMs: (() => number) | undefined,
    private readonly tryAgainMs = TRY_AGAIN_MS,
  ) {}

  /** What the caller holds, in the order in which it was pressed. */
  of(caller: Caller): readonly Item[] {
    return [...(this.#holding.get(caller)?.items.keys() ?? [])];
  }

  /** What others hold and the caller doesn't. */
  ofOthers(caller: Caller): Item[] {
    if (this.#holding.size === 0) return [];
    const own = new Set(this.of(caller));
    return [...this.#othersOf(caller)].filter((item) => !own.has(item));
  }

  /** Those of `items` that no other caller holds. */
  releasable(caller: Caller, items: readonly Item[]): Item[] {
    const others = this.#othersOf(caller);
    return items.filter((item) => !others.has(item));
  }

  #othersOf(caller: Caller): Set<Item> {
    return new Set([...this.#holding].flatMap(([each, { items }]) => (each === caller ? [] : [...items.keys()])));
  }

  /** The caller has pressed `items` and keeps them down; where it has ended meanwhile, until the queue is free. */
  add(caller: Caller, items: readonly Item[]): void {
    const known = this.#holding.get(caller);
    const holding: Holding<Item> = known ?? { items: new Map(), forgetCaller: () => {} };
    const press: Press = { timer: undefined };
    for (const item of items) holding.items.set(item, press);
    if (known === undefined) {
      this.#holding.set(caller, holding);
      // Who ends a caller isn't kept waiting for input that doesn't end.
      holding.forgetCaller = caller.onEnd(async () => {
        await settledWithin(
          END_MS,
          this.#release(caller, () => this.of(caller)),
        );
      });
    }
    if (this.maxMs === undefined) return;
    // Each press has a time of its own: what is pressed later doesn't keep it down.
    const due = () => [...holding.items].flatMap(([item, last]) => (last === press ? [item] : []));
    press.timer = setTimeout(() => void this.#release(caller, due), this.maxMs());
    press.timer.unref();
  }

  /**
   * A call that failed may have pressed `items`. Within its turn they are let go of, but those that the caller held before;
   * where that fails they are taken for held. Never rejects.
   */
  async takeBack(caller: Caller, items: readonly Item[]): Promise<void> {
    const before = this.of(caller);
    const pressed = items.filter((item) => !before.includes(item)).reverse();
    if (pressed.length === 0) return;
    this.add(caller, pressed);
    try {
      const up = this.releasable(caller, pressed);
      if (up.length > 0) await this.release(up);
      this.removeOwn(caller, pressed);
    } catch (thrown) {
      this.log.warn(
        { err: thrown, held: this.what },
        `a ${this.what} that a failed call pressed could not be released`,
      );
    }
  }

  /** `items` are up again, whoever held them before. */
  remove(items: readonly Item[]): void {
    for (const caller of [...this.#holding.keys()]) this.removeOwn(caller, items);
  }

  /** The caller has let go of `items`; they are up unless another caller holds them. */
  removeOwn(caller: Caller, items: readonly Item[]): void {
    const holding = this.#holding.get(caller);
    if (holding === undefined) return;
    const presses = new Set(holding.items.values());
    for (const item of items) holding.items.delete(item);
    const left = new Set(holding.items.values());
    for (const press of presses) if (!left.has(press)) clearTimeout(press.timer);
    if (left.size > 0) return;
    holding.forgetCaller();
    this.#holding.delete(caller);
  }

  /** Releases what `which` names once the queue is free, the last pressed first. Never throws. */
  async #release(caller: Caller, which: () => readonly Item[]): Promise<void> {
    for (let tried = 1; which().length > 0; tried += 1) {
      try {
        await this.queue.ownTurn(async () => {
          const items = [...which()].reverse();
          const up = this.releasable(caller, items);
          if (up.length > 0) await this.release(up);
          this.removeOwn(caller, items);
        });
      } catch (thrown) {
        const details = { err: thrown, held: this.what, tried };
        if (tried >= TRIES) {
          this.log.error(details, `a held ${this.what} could not be released`);
          this.removeOwn(caller, which());
          return;
        }
        this.log.warn(details, `a held ${this.what} could not be released yet`);
        await new Promise((resolve) => setTimeout(resolve, this.tryAgainMs).unref());
      }
    }
  }

  /** Releases all that anyone holds. Never throws. */
  async close(): Promise<void> {
    await Promise.all([...this.#holding.keys()].map((caller) => this.#release(caller, () => this.of(caller))));
  }
}
