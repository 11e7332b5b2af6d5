import { PRINTABLE_KEYS } from "../../src/computer/keys.js";
import { AgentEnvError } from "../../src/errors.js";

/** The modifiers that cua-driver holds for a click or a key, by their W3C names. */
const MODIFIERS: Readonly<Record<string, string>> = {
  Control: "ctrl",
  Shift: "shift",
  Alt: "alt",
  Meta: "super",
  Super: "super",
};

const NAMED: Readonly<Record<string, string>> = {
  ...MODIFIERS,
  Enter: "enter",
  Tab: "tab",
  Escape: "escape",
  Backspace: "backspace",
  Delete: "delete",
  Insert: "insert",
  Home: "home",
  End: "end",
  PageUp: "pageup",
  PageDown: "pagedown",
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
  CapsLock: "capslock",
  NumLock: "numlock",
  ...Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`F${n + 1}`, `f${n + 1}`])),
};

/** The W3C key values that cua-driver 0.37.0 presses in desktop scope. */
export const CUA_KEYS: readonly string[] = [...Object.keys(NAMED), ...PRINTABLE_KEYS];

/** One `press_key` of cua-driver. */
export interface KeyPress {
  key: string;
  modifiers: string[];
}

/**
 * A chord as cua-driver presses it: modifiers, then one key. A chord that holds a key that is no modifier is refused as
 * `unsupported`, since cua-driver answers "Pressed" to it and loses one.
 */
export function keyPress(chord: readonly string[]): KeyPress {
  const held = chord.slice(0, -1);
  const last = chord.at(-1) ?? "";
  const modifiers = heldModifiers(held);
  // cua-driver types `a` for `A`; a capital letter is its key with Shift.
  if (/^[A-Z]$/.test(last)) return { key: last.toLowerCase(), modifiers: [...new Set([...modifiers, "shift"])] };
  return { key: last === " " ? "space" : (NAMED[last] ?? last), modifiers };
}

/** Modifiers as cua-driver names them, each once. */
export function heldModifiers(keys: readonly string[]): string[] {
  const others = keys.filter((key) => MODIFIERS[key] === undefined);
  if (others.length > 0) {
    throw new AgentEnvError("unsupported", `this computer can't hold ${others.join(", ")} while it acts`, {
      hint: `it holds ${Object.keys(MODIFIERS).join(", ")}; press other keys one after the other`,
    });
  }
  return [...new Set(keys.map((key) => MODIFIERS[key] as string))];
}
