import { canonical, ISO_LEVEL3_SHIFT, SHIFT_L } from "./keysyms.js";
import type { KeySymbols, XkbMap } from "./xkb-map.js";

/** A key, and the keys to be held with it, to make a keysym. */
export interface Stroke {
  readonly keycode: number;
  readonly with: readonly number[];
}

const SHIFT = 0x1;
const LOCK = 0x2;
const NUM_LOCK_KEYSYM = 0xff7f;
/** Keys whose press locks something: one that is down is left alone, for pressing it again would turn the lock over. */
const LOCKING = new Set([0xff7f, 0xffe5, 0xffe6, 0xff14, 0xfe01, 0xfe05, 0xfe0f, 0xfe13]);

/** The keymap in one group: which strokes make which keysyms there. */
export class Keymap {
  /** The modifier that Num Lock sets, which doesn't change what keys other than the keypad's make. */
  readonly numLock: number;
  /** Keycodes that make nothing. */
  readonly spare: readonly number[];
  readonly shiftKey: number | undefined;
  readonly #level3Key: number | undefined;
  readonly #strokes = new Map<string, Map<number, Stroke>>();

  constructor(private readonly map: XkbMap) {
    const modifierKey = (keysym: number, mask: number) =>
      map.keycodes.find((code) => map.symbolAt(code, 0, 0) === keysym && (map.modifiersOf(code) & mask) !== 0);
    this.shiftKey = modifierKey(SHIFT_L, SHIFT);
    this.#level3Key = modifierKey(ISO_LEVEL3_SHIFT, ~(SHIFT | LOCK));
    const numLockKey = modifierKey(NUM_LOCK_KEYSYM, ~(SHIFT | LOCK));
    this.numLock = numLockKey === undefined ? 0 : map.modifiersOf(numLockKey);
    this.spare = map.keycodes.filter((code) => map.symbols(code).every((symbol) => symbol === 0));
  }

  /** How to make a keysym in a group with modifiers locked; undefined where it isn't on the keymap. */
  stroke(keysym: number, group: number, locked: number): Stroke | undefined {
    const context = `${group}/${locked}`;
    let strokes = this.#strokes.get(context);
    if (strokes === undefined) {
      strokes = this.#index(group, locked);
      this.#strokes.set(context, strokes);
    }
    return strokes.get(canonical(keysym));
  }

  /** See XkbMap. */
  withChanges(changes: ReadonlyMap<number, KeySymbols | undefined>): ReturnType<XkbMap["withChanges"]> {
    return this.map.withChanges(changes);
  }

  /** The keysyms that a keycode makes alone and with Shift. */
  made(keycode: number): readonly [number, number] {
    return [this.map.symbolAt(keycode, 0, 0), this.map.symbolAt(keycode, 0, SHIFT)];
  }

  /** Whether the key has modifiers, which are in the state of what comes while it is down. */
  hasModifiers(keycode: number): boolean {
    return this.map.modifiersOf(keycode) !== 0;
  }

  /** Whether the key, while it is down, applies to what else is pressed, and can be let up and pressed again. */
  isModifier(keycode: number): boolean {
    return this.map.modifiersOf(keycode) !== 0 && !this.map.symbols(keycode).some((symbol) => LOCKING.has(symbol));
  }

  #index(group: number, locked: number): Map<number, Stroke> {
    const strokes = new Map<number, Stroke>();
    const level3 = this.#level3Key === undefined ? 0 : this.map.modifiersOf(this.#level3Key);
    const combinations = [
      { mods: 0, keys: [] },
      { mods: SHIFT, keys: [this.shiftKey] },
      { mods: level3, keys: [this.#level3Key] },
      { mods: SHIFT | level3, keys: [this.shiftKey, this.#level3Key] },
    ];
    for (const { mods, keys } of combinations) {
      if (keys.includes(undefined)) continue;
      for (const keycode of this.map.keycodes) {
        const keysym = canonical(this.map.symbolAt(keycode, group, mods | locked));
        if (keysym !== 0 && !strokes.has(keysym)) strokes.set(keysym, { keycode, with: keys as number[] });
      }
    }
    return strokes;
  }
}
