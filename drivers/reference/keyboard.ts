import type { Delivery } from "../../src/computer/operations.js";
import { Applications } from "./applications.js";
import type { Hand } from "./hand.js";
import type { Input } from "./input.js";
import type { Stroke } from "./keymap.js";
import { type Layout, noSpareKey, SpareKeys, strokeOf, type Wanted, wantedCharacter, wantedKey } from "./spare-keys.js";

/** An application that answers no pings is taken to have looked up what was pressed, and to have heard of keysyms, after this. */
const BLIND_PRESSED_MS = 400;
const BLIND_MAPPED_MS = 50;

/** Strokes that can be made now, and the version of the keymap that they are for. */
interface Room {
  readonly strokes: readonly Stroke[];
  readonly version: number;
}

/** How keys are pressed, in milliseconds. */
export interface KeyTimes {
  readonly tap_hold_ms: number;
  readonly type_delay_ms: number;
}

/** The keyboard: text, chords, and keys that stay down. */
export class Keyboard {
  readonly #spare = new SpareKeys();
  readonly #applications = new Applications();
  /** Spare keys that were pressed since applications were known to have caught up, and the windows that they went to. */
  readonly #pressed = new Set<number>();
  readonly #windows = new Set<number>();

  constructor(
    private readonly input: Input,
    private readonly times: () => KeyTimes,
    /** Resolves once the window manager is done with what came before; it reads the whole keymap anew at every change. */
    private readonly managed: () => Promise<void>,
  ) {}

  async type(text: string, signal: AbortSignal, delivery: Delivery): Promise<void> {
    const wanted = [...text].map(wantedCharacter);
    const { tap_hold_ms, type_delay_ms } = this.times();
    await this.input.perform(signal, delivery, {
      unlocked: true,
      prepare: (_session, layout) => this.#checkRoom(wanted, layout),
      act: async (hand, _prepared, layout) => {
        await hand.withoutRepeat(tap_hold_ms);
        for (let at = 0; at < wanted.length; ) {
          const { strokes, version } = await this.#makeRoom(hand, layout, wanted.slice(at));
          if (strokes.length === 0) throw noSpareKey();
          for (const stroke of strokes) {
            await this.#tap(hand, stroke, tap_hold_ms);
            at += 1;
            if (at < wanted.length) await hand.pause(type_delay_ms);
            // Somebody changed the keymap: what comes now is looked up on the new one.
            if (hand.session.keymapVersion !== version) break;
          }
        }
      },
    });
  }

  async press(chord: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    const wanted = chord.map(wantedKey);
    const { tap_hold_ms } = this.times();
    await this.input.perform(signal, delivery, {
      unlocked: isCharacters(chord),
      prepare: (_session, layout) => this.#checkRoom(wanted, layout),
      act: async (hand, _prepared, layout) => {
        await hand.withoutRepeat(tap_hold_ms);
        const pressed: number[] = [];
        for (const stroke of await this.#strokesOf(hand, layout, wanted)) {
          pressed.push(...(await this.#down(hand, stroke)));
        }
        await hand.pause(tap_hold_ms);
        for (const keycode of pressed.reverse()) await hand.release(keycode);
      },
    });
  }

  /** Presses modifiers for a pointer's call, around what `act` does. */
  async around(hand: Hand, layout: Layout, keys: readonly string[], act: () => Promise<void>): Promise<void> {
    const pressed: number[] = [];
    for (const stroke of await this.#strokesOf(hand, layout, keys.map(wantedKey))) {
      pressed.push(...(await this.#down(hand, stroke)));
    }
    await act();
    for (const keycode of pressed.reverse()) await hand.release(keycode);
  }

  /** Checks what `around` will need. */
  check(keys: readonly string[], layout: Layout): void {
    this.#checkRoom(keys.map(wantedKey), layout);
  }

  async hold(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    const wanted = keys.map(wantedKey);
    await this.input.perform(signal, delivery, {
      unlocked: isCharacters(keys),
      prepare: (_session, layout) => this.#checkRoom(wanted, layout),
      act: async (hand, _prepared, layout) => {
        const strokes = await this.#strokesOf(hand, layout, wanted);
        for (const stroke of strokes) await this.#down(hand, stroke);
        for (const [index, key] of keys.entries()) {
          const { keycode, with: others } = strokes[index] as Stroke;
          this.input.held.set(key, [...others, keycode]);
          hand.keep([...others, keycode]);
        }
      },
    });
  }

  /** Lets go of keys, in order; what another key that is held needs stays down. */
  async release(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    await this.input.perform(signal, delivery, {
      alone: false,
      prepare: (_session, layout) => layout,
      act: async (hand, layout) => {
        for (const key of keys) {
          const known = this.input.held.get(key);
          this.input.held.delete(key);
          const needed = new Set([...this.input.held.values()].flat());
          const keycodes = known ?? this.#keycodeOf(key, layout);
          for (const keycode of [...keycodes].reverse()) {
            if (hand.down.has(keycode) && !needed.has(keycode)) await hand.release(keycode);
          }
        }
      },
    });
  }

  /** Empties the keys that were given keysyms. */
  async restore(): Promise<void> {
    const session = this.input.current;
    if (session === undefined) return;
    this.#spare.keepOnly(await session.keymap());
    if (this.#spare.mapped.length === 0) return;
    await session.changeKeymap(new Map(this.#spare.mapped.map((keycode) => [keycode, undefined])));
  }

  #keycodeOf(key: string, layout: Layout): readonly number[] {
    const stroke = strokeOf(wantedKey(key), layout);
    return stroke === undefined ? [] : [stroke.keycode];
  }

  #checkRoom(wanted: readonly Wanted[], layout: Layout): void {
    if (wanted.every((each) => strokeOf(each, layout) !== undefined)) return;
    if (!this.#spare.hasRoom(layout)) throw noSpareKey();
  }

  /** The strokes of a chord, whose keys are down together. */
  async #strokesOf(hand: Hand, layout: Layout, wanted: readonly Wanted[]): Promise<readonly Stroke[]> {
    if (wanted.length === 0) return [];
    const { strokes } = await this.#makeRoom(hand, layout, wanted);
    if (strokes.length < wanted.length) throw noSpareKey();
    return strokes;
  }

  /**
   * Maps spare keys to as many of `wanted`, from the first on, as there is room for. Applications have read all presses of a
   * key before it is given other keysyms, and have heard of these before it is pressed.
   */
  async #makeRoom(hand: Hand, layout: Layout, wanted: readonly Wanted[]): Promise<Room> {
    const { session, signal, down } = hand;
    const keymap = await session.keymap();
    this.#spare.keepOnly(keymap);
    const { strokes, changes } = this.#spare.fit(wanted, { ...layout, keymap, down });
    const usesSpare = strokes.some(({ keycode }) => this.#spare.has(keycode));
    const focused = usesSpare ? await this.#applications.focused(session) : undefined;
    if (changes.size > 0) {
      if ([...changes.keys()].some((keycode) => this.#pressed.has(keycode))) {
        await this.#applications.caughtUp(session, this.#windows, BLIND_PRESSED_MS, signal);
        this.#pressed.clear();
        this.#windows.clear();
      }
      const isDone = await session.changeKeymap(changes);
      if (!isDone || !this.#spare.haveTaken(await session.keymap(), changes))
        return this.#makeRoom(hand, layout, wanted);
      await this.managed();
    }
    if (focused !== undefined) {
      await this.#applications.tellOfKeymap(session, focused);
      if (changes.size > 0) await this.#applications.caughtUp(session, [focused], BLIND_MAPPED_MS, signal);
      this.#windows.add(focused);
    }
    for (const { keycode } of strokes) if (this.#spare.has(keycode)) this.#pressed.add(keycode);
    return { strokes, version: session.keymapVersion };
  }

  /** Presses a stroke's keys that aren't down yet, and answers which. */
  async #down(hand: Hand, { keycode, with: others }: Stroke): Promise<number[]> {
    const pressed = [...others, keycode].filter((code) => !hand.down.has(code));
    for (const code of pressed) await hand.press(code);
    return pressed;
  }

  async #tap(hand: Hand, { keycode, with: others }: Stroke, holdMs: number): Promise<void> {
    const modifiers = others.filter((code) => !hand.down.has(code));
    for (const code of modifiers) await hand.press(code);
    const isHeld = hand.down.has(keycode);
    // A key that somebody holds is typed by letting it up and pressing it again; it then stays down.
    if (isHeld) await hand.release(keycode);
    await hand.press(keycode);
    await hand.pause(holdMs);
    if (isHeld) hand.keep([keycode]);
    else await hand.release(keycode);
    for (const code of modifiers.reverse()) await hand.release(code);
  }
}

/** Whether these keys mean characters, which a lock would change; a lock's own key has to find it as it is. */
function isCharacters(keys: readonly string[]): boolean {
  return keys.some((key) => [...key].length === 1) && !keys.some((key) => key.endsWith("Lock"));
}
