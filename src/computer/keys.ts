import { closest } from "../closest.js";
import { AgentEnvError } from "../errors.js";

/**
 * Keys are W3C UI Events key values: one character, or a named key, matched without case and passed on in W3C case. What a
 * model may write instead (`ctrl`, `Return`, `ctrl+s`) is refused with a hint and never taken for something.
 * Source: UI Events KeyboardEvent key Values, the part that AgentEnv protocol 1.0 takes.
 */
export const NAMED_KEYS: readonly string[] = [
  ..."Alt AltGraph CapsLock Control Fn FnLock Hyper Meta NumLock ScrollLock Shift Super Symbol SymbolLock".split(" "),
  ..."Enter Tab ArrowDown ArrowLeft ArrowRight ArrowUp End Home PageDown PageUp".split(" "),
  ..."Backspace Clear Copy CrSel Cut Delete EraseEof ExSel Insert Paste Redo Undo".split(" "),
  ..."Accept Again Attn Cancel ContextMenu Escape Execute Find Help Pause Play Props Select ZoomIn ZoomOut".split(" "),
  ..."BrightnessDown BrightnessUp Eject LogOff Power PowerOff PrintScreen Hibernate Standby WakeUp".split(" "),
  ...Array.from({ length: 24 }, (_, index) => `F${index + 1}`),
  ..."AudioVolumeDown AudioVolumeMute AudioVolumeUp".split(" "),
  ..."MediaPlayPause MediaStop MediaTrackNext MediaTrackPrevious".split(" "),
  ..."BrowserBack BrowserFavorites BrowserForward BrowserHome BrowserRefresh BrowserSearch BrowserStop".split(" "),
];

/** Any printable ASCII character, the space included. */
export const PRINTABLE_KEYS: readonly string[] = Array.from({ length: 0x7f - 0x20 }, (_, n) =>
  String.fromCodePoint(0x20 + n),
);

const BY_LOWER_CASE = new Map(NAMED_KEYS.map((name) => [name.toLowerCase(), name]));

/** What models write for a key, from other tools' vocabularies. */
const OTHER_SPELLINGS = new Map([
  ...["ctrl", "ctl", "control_l", "control_r", "lctrl", "rctrl"].map((spelling) => [spelling, "Control"] as const),
  ...["cmd", "command", "win", "windows", "super_l", "super_r"].map((spelling) => [spelling, "Meta"] as const),
  ...["option", "opt", "alt_l", "alt_r"].map((spelling) => [spelling, "Alt"] as const),
  ...["shift_l", "shift_r"].map((spelling) => [spelling, "Shift"] as const),
  ...["return", "kp_enter", "newline"].map((spelling) => [spelling, "Enter"] as const),
  ["esc", "Escape"],
  ["del", "Delete"],
  ["ins", "Insert"],
  ["bksp", "Backspace"],
  ["up", "ArrowUp"],
  ["down", "ArrowDown"],
  ["left", "ArrowLeft"],
  ["right", "ArrowRight"],
  ["pgup", "PageUp"],
  ["page_up", "PageUp"],
  ["prior", "PageUp"],
  ["pgdn", "PageDown"],
  ["page_down", "PageDown"],
  ["next", "PageDown"],
  ["menu", "ContextMenu"],
  ["print", "PrintScreen"],
  ["caps", "CapsLock"],
  ["caps_lock", "CapsLock"],
] as const);

/** Which keys a computer can press. */
export type SupportedKeys = "all" | readonly string[];

/** Which keys those are, in words for an agent: `any printable ASCII character, Enter, F1 to F12`. */
export function saidKeys(keys: SupportedKeys): string {
  if (keys === "all") return "every key that W3C names, and any character";
  const printable = PRINTABLE_KEYS.every((key) => keys.includes(key));
  const rest = keys.filter((key) => !(printable && PRINTABLE_KEYS.includes(key)));
  const functions = rest.filter((key) => /^F\d+$/.test(key));
  const isRow = functions.length > 2 && functions.every((key, at) => key === `F${at + 1}`);
  return [
    ...(printable ? ["any printable ASCII character"] : []),
    ...rest.filter((key) => !isRow || !functions.includes(key)).map((key) => (key === " " ? "the space" : key)),
    ...(isRow ? [`F1 to F${functions.length}`] : []),
  ].join(", ");
}

/** The key in W3C case. Throws `invalid_argument` for what is no key, with a hint naming the one that was meant. */
export function canonicalKey(key: string): string {
  if (isOneCharacter(key)) return key;
  const name = BY_LOWER_CASE.get(key.toLowerCase());
  if (name !== undefined) return name;
  throw new AgentEnvError("invalid_argument", `${JSON.stringify(key)} is not a W3C key value`, { hint: hintFor(key) });
}

/**
 * A chord's keys in W3C case. Throws `invalid_argument` for an empty one or one with something that is no key, and
 * `unsupported` for a key that the computer doesn't have.
 */
export function chordOf(keys: readonly string[], supported: SupportedKeys): string[] {
  if (keys.length === 0) {
    throw new AgentEnvError("invalid_argument", "keys is empty", {
      hint: 'name at least one W3C key value, such as ["Control", "s"]',
    });
  }
  const chord = keys.map(canonicalKey);
  const missing = supported === "all" ? [] : chord.filter((key) => !supported.includes(key));
  if (missing.length > 0) {
    throw new AgentEnvError("unsupported", `this computer can't press ${missing.join(", ")}`, {
      hint: "the card's computer/v1 says which keys it has",
    });
  }
  return chord;
}

/** One code point, which may be two UTF-16 units. */
export function isOneCharacter(text: string): boolean {
  const first = text.codePointAt(0);
  return first !== undefined && text.length === (first > 0xffff ? 2 : 1);
}

/** How many characters a text has: code points, not UTF-16 units. */
export function characterCount(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(at + 1);
    if (next >= 0xdc00 && next <= 0xdfff) count -= 1;
  }
  return count;
}

/** The characters of a text that can't be typed, as `U+` codes: control characters but newline and tab, and lone surrogates. */
export function untypeable(text: string): string[] {
  const found = new Set<number>();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  for (const [character] of text.matchAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\p{Surrogate}/gu)) {
    found.add(character.codePointAt(0) ?? 0);
  }
  return [...found].sort((a, b) => a - b).map((code) => `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
}

function hintFor(key: string): string {
  const trimmed = key.trim();
  if (trimmed.length > 1 && /[+\s]/.test(trimmed)) {
    return 'keys is a list with one key an entry, such as ["Control", "s"]';
  }
  const spelling = key.toLowerCase();
  if (spelling === "space" || spelling === "spacebar") return 'did you mean " "?';
  const meant = OTHER_SPELLINGS.get(spelling) ?? closest(key, NAMED_KEYS);
  return meant === undefined
    ? "a key is one character, or a named W3C key such as Enter or ArrowDown"
    : `did you mean ${JSON.stringify(meant)}?`;
}
