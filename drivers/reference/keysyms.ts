import { x11 } from "./x11.js";

/** No keysym: an empty place on the keymap. */
export const NO_SYMBOL = 0;
export const RETURN = 0xff0d;
export const TAB = 0xff09;
export const SHIFT_L = 0xffe1;
export const ISO_LEVEL3_SHIFT = 0xfe03;

/** A keysym from here on is the code point of a character above Latin-1. */
const UNICODE = 0x01000000;

/**
 * The keysyms of the W3C named keys, after X11's keysymdef.h and XF86keysym.h. Meta is the key with the system's logo, which X
 * calls Super. Accept, FnLock, Symbol and SymbolLock have none.
 */
const NAMED: Readonly<Record<string, number>> = {
  Alt: 0xffe9,
  AltGraph: ISO_LEVEL3_SHIFT,
  CapsLock: 0xffe5,
  Control: 0xffe3,
  Fn: 0x100811d0,
  Hyper: 0xffed,
  Meta: 0xffeb,
  NumLock: 0xff7f,
  ScrollLock: 0xff14,
  Shift: SHIFT_L,
  Super: 0xffeb,
  Enter: RETURN,
  Tab: TAB,
  ArrowDown: 0xff54,
  ArrowLeft: 0xff51,
  ArrowRight: 0xff53,
  ArrowUp: 0xff52,
  End: 0xff57,
  Home: 0xff50,
  PageDown: 0xff56,
  PageUp: 0xff55,
  Backspace: 0xff08,
  Clear: 0xff0b,
  Copy: 0x1008ff57,
  CrSel: 0xfd1c,
  Cut: 0x1008ff58,
  Delete: 0xffff,
  EraseEof: 0xfd06,
  ExSel: 0xfd1b,
  Insert: 0xff63,
  Paste: 0x1008ff6d,
  Redo: 0xff66,
  Undo: 0xff65,
  // Sun's keyboards have one key for both, and one keysym.
  Again: 0xff66,
  Attn: 0xfd0e,
  Cancel: 0xff69,
  ContextMenu: 0xff67,
  Escape: 0xff1b,
  Execute: 0xff62,
  Find: 0xff68,
  Help: 0xff6a,
  Pause: 0xff13,
  Play: 0xfd16,
  Props: 0x1005ff70,
  Select: 0xff60,
  ZoomIn: 0x1008ff8b,
  ZoomOut: 0x1008ff8c,
  BrightnessDown: 0x1008ff03,
  BrightnessUp: 0x1008ff02,
  Eject: 0x1008ff2c,
  LogOff: 0x1008ff61,
  Power: 0x1008ff21,
  PowerOff: 0x1008ff2a,
  PrintScreen: 0xff61,
  Hibernate: 0x1008ffa8,
  Standby: 0x1008ff10,
  WakeUp: 0x1008ff2b,
  ...Object.fromEntries(Array.from({ length: 24 }, (_, index) => [`F${index + 1}`, 0xffbe + index])),
  AudioVolumeDown: 0x1008ff11,
  AudioVolumeMute: 0x1008ff12,
  AudioVolumeUp: 0x1008ff13,
  MediaPlayPause: 0x1008ff14,
  MediaStop: 0x1008ff15,
  MediaTrackNext: 0x1008ff17,
  MediaTrackPrevious: 0x1008ff16,
  BrowserBack: 0x1008ff26,
  BrowserFavorites: 0x1008ff30,
  BrowserForward: 0x1008ff27,
  BrowserHome: 0x1008ff18,
  BrowserRefresh: 0x1008ff29,
  BrowserSearch: 0x1008ff1b,
  BrowserStop: 0x1008ff28,
};

/** The keysym of a W3C key value, named or one character; undefined where X has none. */
export function keysymOf(key: string): number | undefined {
  return [...key].length === 1 ? characterKeysym(key) : NAMED[key];
}

/** A character's keysym: newline and tab are their keys, Latin-1 is itself, and all else has its code point in it. */
export function characterKeysym(character: string): number {
  if (character === "\n") return RETURN;
  if (character === "\t") return TAB;
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? code : UNICODE + code;
}

/**
 * One keysym for all that mean the same character: layouts name letters by keysyms from before Unicode, such as
 * Cyrillic_a. Keypad and function keys stay as they are.
 */
export function canonical(keysym: number): number {
  if (keysym >= UNICODE + 0x20 && keysym < UNICODE + 0x100) return keysym - UNICODE;
  if (keysym < 0x100 || keysym >= 0xfd00) return keysym;
  old ??= oldKeysyms();
  return old.get(keysym) ?? keysym;
}

let old: Map<number, number> | undefined;

/** The table that comes with `x11` describes a character's keysym as `(character) NAME`. */
function oldKeysyms(): Map<number, number> {
  const found = new Map<number, number>();
  for (const entry of Object.values(x11().keySyms)) {
    if (typeof entry !== "object" || entry.code < 0x100 || entry.code >= 0xfd00) continue;
    const character = /^\((.)\) /u.exec(entry.description ?? "")?.[1];
    if (character !== undefined) found.set(entry.code, characterKeysym(character));
  }
  return found;
}
