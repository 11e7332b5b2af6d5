import { AgentEnvError } from "../../src/errors.js";
import type { Keymap, Stroke } from "./keymap.js";
import { canonical, characterKeysym, keysymOf } from "./keysyms.js";
import type { KeySymbols } from "./xkb-map.js";

/** What is to be made: a keysym, and the keysyms that a spare key for it gets. */
export interface Wanted {
  readonly keysym: number;
  readonly symbols: KeySymbols;
  /** A named key, which is pressed without Shift or AltGr. */
  readonly alone?: boolean;
}

/** How the keyboard stands: its keymap, its group, the locks that stay on, the keys that are down. */
export interface Layout {
  readonly keymap: Keymap;
  readonly group: number;
  readonly locked: number;
  readonly down: ReadonlySet<number>;
}

/** How to make as many of the wanted as there are spare keys for, and what has to be mapped before. */
export interface Fit {
  readonly strokes: readonly Stroke[];
  readonly changes: ReadonlyMap<number, KeySymbols>;
}

/** A key for a character has both cases where they are a pair; any other makes the same with Shift and without. */
export function wantedCharacter(character: string): Wanted {
  const keysym = characterKeysym(character);
  const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
  const isPair =
    lower !== upper &&
    [...lower].length === 1 &&
    [...upper].length === 1 &&
    lower.toUpperCase() === upper &&
    upper.toLowerCase() === lower &&
    (character === lower || character === upper);
  return { keysym, symbols: isPair ? [characterKeysym(lower), characterKeysym(upper)] : [keysym, keysym] };
}

/** Throws `unsupported` for a W3C key value that X has no keysym for. */
export function wantedKey(key: string): Wanted {
  if ([...key].length === 1) return wantedCharacter(key);
  const keysym = keysymOf(key);
  if (keysym === undefined) throw new AgentEnvError("unsupported", `X has no keysym for ${key}`);
  return { keysym, symbols: [keysym, keysym], alone: true };
}

/** How the keymap makes it; undefined where it doesn't. */
export function strokeOf({ keysym, alone }: Wanted, { keymap, group, locked }: Layout): Stroke | undefined {
  const stroke = keymap.stroke(keysym, group, locked);
  return alone && stroke !== undefined && stroke.with.length > 0 ? undefined : stroke;
}

/**
 * The keycodes that the layout leaves empty, and what they were given. Each keeps its keysyms for as long as it can: the least
 * recently used one is given others first, and never one that is down.
 */
export class SpareKeys {
  /** In the order of their last use. */
  readonly #mapped = new Map<number, KeySymbols>();
  /** Keys that don't make what they are given, since the layout fixes how Shift applies to them. */
  readonly #unfit = new Set<number>();

  /** Forgets what the keymap, read anew, no longer has as it was given. */
  keepOnly(keymap: Keymap): void {
    for (const [keycode, symbols] of this.#mapped) {
      if (!makes(keymap, keycode, symbols)) this.#mapped.delete(keycode);
    }
  }

  /** Whether the keymap, read anew, has the changes; a key that didn't take its own isn't used again. */
  haveTaken(keymap: Keymap, changes: ReadonlyMap<number, KeySymbols>): boolean {
    const failed = [...changes].filter(([keycode, symbols]) => !makes(keymap, keycode, symbols));
    for (const [keycode] of failed) {
      this.#unfit.add(keycode);
      this.#mapped.delete(keycode);
    }
    return failed.length === 0;
  }

  /** The keycodes that were given something, the least recently used one first. */
  get mapped(): readonly number[] {
    return [...this.#mapped.keys()];
  }

  has(keycode: number): boolean {
    return this.#mapped.has(keycode);
  }

  /** Whether there is a key that could be given something. */
  hasRoom({ keymap, down }: Layout): boolean {
    const keycodes = [...keymap.spare, ...this.#mapped.keys()];
    return keycodes.some((keycode) => !down.has(keycode) && !this.#unfit.has(keycode));
  }

  /** Takes as many of `wanted`, from the first on, as can be made with one mapping of the spare keys. */
  fit(wanted: readonly Wanted[], layout: Layout): Fit {
    const { keymap, down } = layout;
    const strokes: Stroke[] = [];
    const changes = new Map<number, KeySymbols>();
    const kept = new Set<number>();
    const fresh = new Map<number, Stroke>();
    const free = keymap.spare.filter((keycode) => !down.has(keycode) && !this.#unfit.has(keycode));
    for (const each of wanted) {
      const { keysym, symbols } = each;
      const known = strokeOf(each, layout);
      // A key that has been given others by then no longer makes what the keymap says.
      let stroke = known !== undefined && !changes.has(known.keycode) ? known : fresh.get(canonical(keysym));
      if (stroke === undefined) {
        const keycode = free.shift() ?? this.mapped.find((code) => !kept.has(code) && !down.has(code));
        if (keycode === undefined) break;
        changes.set(keycode, symbols);
        this.#mapped.delete(keycode);
        const shift = keymap.shiftKey;
        fresh.set(canonical(symbols[0]), { keycode, with: [] });
        if (symbols[1] !== symbols[0]) {
          fresh.set(canonical(symbols[1]), { keycode, with: shift === undefined ? [] : [shift] });
        }
        stroke = fresh.get(canonical(keysym)) as Stroke;
        this.#mapped.set(keycode, symbols);
      }
      kept.add(stroke.keycode);
      const own = this.#mapped.get(stroke.keycode);
      if (own !== undefined) {
        this.#mapped.delete(stroke.keycode);
        this.#mapped.set(stroke.keycode, own);
      }
      strokes.push(stroke);
    }
    return { strokes, changes };
  }
}

function makes(keymap: Keymap, keycode: number, symbols: KeySymbols): boolean {
  return keymap.made(keycode).every((keysym, index) => canonical(keysym) === canonical(symbols[index] ?? 0));
}

/** The refusal of what would need a spare key where none is to be had. */
export function noSpareKey(): AgentEnvError {
  return new AgentEnvError("unsupported", "the keymap lacks a character of this, and has no free keycode for it", {
    hint: "release keys that are held, or use characters that are on the keyboard's layout",
  });
}
