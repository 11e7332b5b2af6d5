import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "../../src/computer/operations.js";
import { AgentEnvError } from "../../src/errors.js";
import { ConnectionLost } from "./connection.js";
import type { InputSession } from "./input-session.js";
import type { Keymap } from "./keymap.js";
import { unavailable } from "./link.js";

/** Puts one thing back as it was: lets a key up, sets a lock again. */
export type Undo = (session: InputSession) => void | Promise<void>;

/** From how long a hold on keys would begin to repeat, in milliseconds; servers wait 200 at least. */
const REPEAT_MS = 150;
/** The bits of the buttons in a pointer's state. */
const BUTTONS = 0x1f00;

/**
 * The hand of one input call: it presses, moves and waits, and knows what it has to put back. Nothing is sent once the call's
 * signal is aborted.
 *
 * While a modifier is down each event has a round trip of its own: in a burst without one, servers have been seen to leave held
 * modifiers out of the state of all events but the first.
 */
export class Hand {
  readonly #undo: { what: string; undo: Undo }[] = [];
  #sent = false;

  constructor(
    readonly session: InputSession,
    /** The keys that are down; kept up to date by what the hand does. */
    readonly down: Set<number>,
    private readonly keymap: Keymap,
    readonly signal: AbortSignal,
    private readonly delivery: Delivery,
  ) {}

  get hasSent(): boolean {
    return this.#sent;
  }

  async press(keycode: number): Promise<void> {
    this.#begin();
    this.#later(`key ${keycode}`, (session) => session.key(keycode, false));
    this.down.add(keycode);
    this.session.key(keycode, true);
    await this.#inStep();
  }

  async release(keycode: number): Promise<void> {
    this.#begin();
    this.session.key(keycode, false);
    await this.#inStep();
    this.down.delete(keycode);
    this.#done(`key ${keycode}`);
  }

  async pressButton(button: number): Promise<void> {
    this.#begin();
    this.#later(`button ${button}`, (session) => session.button(button, false));
    this.session.button(button, true);
    await this.#inStep();
  }

  async releaseButton(button: number): Promise<void> {
    this.#begin();
    this.session.button(button, false);
    await this.#inStep();
    this.#done(`button ${button}`);
  }

  async move(x: number, y: number): Promise<void> {
    this.#begin();
    this.session.move(x, y);
    await this.#inStep();
  }

  /** Lets a key up that somebody else holds, until the end of the call. */
  async lift(keycode: number): Promise<void> {
    this.#begin();
    this.#later(`lifted ${keycode}`, (session) => session.key(keycode, true));
    this.session.key(keycode, false);
    await this.arrived();
    this.down.delete(keycode);
  }

  /** Resolves once the server has taken all that was sent. */
  arrived(): Promise<void> {
    return this.session.connection.sync();
  }

  /** Whether a button is down; once the answer is there the server has taken all that was sent. */
  async buttonsDown(): Promise<boolean> {
    return ((await this.session.pointer()).keyMask & BUTTONS) !== 0;
  }

  async #inStep(): Promise<void> {
    for (const keycode of this.down) if (this.keymap.hasModifiers(keycode)) return this.arrived();
  }

  /** Takes locks off until the end of the call. */
  async unlock(locks: number): Promise<void> {
    this.#begin();
    this.#later("locks", (session) => session.lock(locks, locks));
    await this.session.lock(locks, 0);
  }

  /** Keeps a hold of `ms` from repeating its keys, until the end of the call. */
  async withoutRepeat(ms: number): Promise<void> {
    if (ms < REPEAT_MS || !(await this.session.repeats())) return;
    this.#later("repeat", (session) => session.setRepeats(true));
    await this.session.setRepeats(false);
  }

  async pause(ms: number): Promise<void> {
    this.signal.throwIfAborted();
    if (ms <= 0) return;
    await this.arrived();
    await sleep(ms, undefined, { signal: this.signal });
  }

  /** What was pressed stays down after the call. */
  keep(keycodes: readonly number[], button?: number): void {
    for (const keycode of keycodes) this.#done(`key ${keycode}`);
    if (button !== undefined) this.#done(`button ${button}`);
  }

  /** Puts everything back, the last thing first. What can't be, since the connection dropped, is returned. */
  async putBack(): Promise<Undo[]> {
    for (;;) {
      const last = this.#undo.at(-1);
      if (last === undefined) return [];
      try {
        await last.undo(this.session);
        await this.arrived();
      } catch (thrown) {
        if (thrown instanceof ConnectionLost) return this.#undo.map(({ undo }) => undo).reverse();
        throw thrown;
      }
      this.#undo.pop();
    }
  }

  /** A dropped connection as what it means for the call. */
  failure(thrown: unknown): unknown {
    if (!(thrown instanceof ConnectionLost)) return thrown;
    if (!this.#sent) return unavailable(thrown);
    return new AgentEnvError("delivery_failed", `${thrown.message} while the input was sent`, {
      hint: "look at a screenshot before going on: nothing is sent again by itself",
      cause: thrown,
    });
  }

  #begin(): void {
    this.signal.throwIfAborted();
    if (this.#sent) return;
    this.#sent = true;
    this.delivery.sent();
  }

  #later(what: string, undo: Undo): void {
    this.#undo.push({ what, undo });
  }

  #done(what: string): void {
    const at = this.#undo.findLastIndex((each) => each.what === what);
    if (at !== -1) this.#undo.splice(at, 1);
  }
}
