import type { ComputerLog } from "../../src/computer/log.js";
import type { Delivery } from "../../src/computer/operations.js";
import { Hand, type Undo } from "./hand.js";
import type { InputSession } from "./input-session.js";
import type { Link } from "./link.js";
import type { Layout } from "./spare-keys.js";

/** What an input call is made of. */
export interface InputPlan<P> {
  /** Whether what is pressed is characters, which no lock is to change. */
  readonly unlocked?: boolean;
  /** False where no key is pressed: then it is enough that no modifier is down. Default true. */
  readonly keys?: boolean;
  /** Whether nobody else's held modifiers may apply; false where nothing is pressed. Default true. */
  readonly alone?: boolean;
  /** Whether buttons are pressed that a window manager may hold back. */
  readonly clicks?: boolean;
  /** Reads and checks what the call needs; sends nothing, and is done again where the connection dropped. */
  prepare(session: InputSession, layout: Layout): P | Promise<P>;
  /** Sends the call's events. */
  act(hand: Hand, prepared: P, layout: Layout): Promise<void>;
}

/** The display's input: every call goes through here, and none leaves anything pressed that it doesn't mean to. */
export class Input {
  /** What calls could not put back since their connection dropped. */
  #debts: Undo[] = [];
  #session: InputSession | undefined;
  /** The keycodes of each W3C key value that is held through keyDown, in the order in which they were pressed. */
  readonly held = new Map<string, readonly number[]>();

  constructor(
    private readonly link: Link<InputSession>,
    private readonly log: ComputerLog,
  ) {}

  /** The session that was used last, if it is still there. */
  get current(): InputSession | undefined {
    return this.#session?.connection.lost ? undefined : this.#session;
  }

  /** Throws `device_unavailable` where there is no X server, and `delivery_failed` where the connection drops on the way. */
  async perform<P>(signal: AbortSignal, delivery: Delivery, plan: InputPlan<P>): Promise<void> {
    const own = new Set(delivery.held.own.flatMap((key) => this.held.get(key) ?? []));
    const { session, prepared, layout, locks } = await this.link.read((each) => this.#prepare(each, plan));
    const hand = new Hand(session, new Set(layout.down), layout.keymap, signal, delivery);
    try {
      if (plan.alone !== false) {
        for (const keycode of layout.down) {
          if (!own.has(keycode) && layout.keymap.isModifier(keycode)) await hand.lift(keycode);
        }
      }
      if (locks !== 0) await hand.unlock(locks);
      await plan.act(hand, prepared, { ...layout, down: hand.down });
      if (!plan.clicks) await hand.arrived();
      else if (!(await hand.buttonsDown())) delivery.passedOn?.();
    } catch (thrown) {
      throw hand.failure(thrown);
    } finally {
      await this.#putBack(hand);
    }
  }

  /** Brings up to date what is known of the server behind a session, and puts back what an earlier call could not. */
  async settle(session: InputSession): Promise<void> {
    if (this.#session?.server !== session.server) {
      // Nothing is down on a server that has just started.
      this.#debts = [];
      this.held.clear();
    }
    this.#session = session;
    for (;;) {
      const debt = this.#debts[0];
      if (debt === undefined) return;
      await debt(session);
      await session.connection.sync();
      this.#debts.shift();
    }
  }

  async #prepare<P>(session: InputSession, plan: InputPlan<P>) {
    await this.settle(session);
    const known = plan.keys === false ? session.knownState : undefined;
    const [keymap, state, down] =
      known?.baseMods === 0
        ? [await session.keymap(), known, new Set<number>()]
        : await Promise.all([session.keymap(), session.keyboardState(), session.keysDown()]);
    const locks = plan.unlocked ? state.lockedMods & ~keymap.numLock : 0;
    const layout: Layout = { keymap, group: state.group, locked: state.lockedMods & ~locks, down };
    return { session, prepared: await plan.prepare(session, layout), layout, locks };
  }

  async #putBack(hand: Hand): Promise<void> {
    const left = await hand.putBack().catch((err) => {
      this.log.warn({ err }, "input could not be put back as it was");
      return [];
    });
    if (left.length === 0) return;
    this.#debts.push(...left);
    try {
      await this.settle(await this.link.session());
    } catch (err) {
      this.log.debug({ err }, "what the call pressed is let go of with the next connection");
    }
  }
}
