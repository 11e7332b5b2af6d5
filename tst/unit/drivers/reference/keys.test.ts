import { describe, expect, it } from "vitest";
import { Keymap } from "../../../../drivers/reference/keymap.js";
import { canonical, characterKeysym, keysymOf } from "../../../../drivers/reference/keysyms.js";
import {
  type Layout,
  SpareKeys,
  strokeOf,
  wantedCharacter,
  wantedKey,
} from "../../../../drivers/reference/spare-keys.js";
import { XkbMap } from "../../../../drivers/reference/xkb-map.js";
import { NAMED_KEYS } from "../../../../src/computer/keys.js";

const ONE_LEVEL = { mask: 0, levels: [] };
const TWO_LEVELS = { mask: 1, levels: [{ mods: 1, level: 1 }] };
const FOUR_LEVELS = {
  mask: 0x81,
  levels: [
    { mods: 0x01, level: 1 },
    { mods: 0x80, level: 2 },
    { mods: 0x81, level: 3 },
  ],
};

function key(type: number, symbols: number[], groups = 1) {
  return {
    types: [type, type, type, type],
    groups,
    outOfRange: 0,
    redirect: 0,
    width: symbols.length / groups,
    symbols,
  };
}

/** From keycode 10 on: Shift, AltGr, q with @ and €, a with Cyrillic ф in a second group, Hyper with Shift alone, nothing four times. */
function keymap(spare: number[][] = [[], [], [], []]): Keymap {
  const keys = [
    key(0, [0xffe1]),
    key(0, [0xfe03]),
    key(2, [0x71, 0x51, 0x40, 0x20ac]),
    key(1, [0x61, 0x41, 0x6c6, 0x6e6], 2),
    key(1, [0, 0xffed]),
    ...spare.map((symbols) => (symbols.length === 0 ? { ...key(0, []), groups: 0 } : key(1, symbols))),
  ];
  const modifiers = new Map([
    [10, 0x01],
    [11, 0x80],
  ]);
  return new Keymap(new XkbMap(10, [ONE_LEVEL, TWO_LEVELS, FOUR_LEVELS], keys, modifiers));
}

const layout = (map = keymap(), down: number[] = [], group = 0): Layout => ({
  keymap: map,
  group,
  locked: 0,
  down: new Set(down),
});

describe("keysyms", () => {
  it("each named key has one, but those that X doesn't know", () => {
    expect(NAMED_KEYS.filter((name) => keysymOf(name) === undefined)).toEqual([
      "FnLock",
      "Symbol",
      "SymbolLock",
      "Accept",
    ]);
  });

  it("of characters are themselves in Latin-1, and hold the code point beyond", () => {
    expect([characterKeysym("é"), characterKeysym("ж"), characterKeysym("😀")]).toEqual([0xe9, 0x1000436, 0x101f600]);
    expect([characterKeysym("\n"), characterKeysym("\t")]).toEqual([0xff0d, 0xff09]);
  });

  it("from before Unicode mean the same as those that have the code point", () => {
    expect(canonical(0x6c6)).toBe(characterKeysym("ф"));
    expect(canonical(0x20ac)).toBe(characterKeysym("€"));
    expect(canonical(0x10000e9)).toBe(0xe9);
    // The keypad's 1 is not the character.
    expect(canonical(0xffb1)).toBe(0xffb1);
  });
});

describe("a keymap", () => {
  it("makes a character with as few keys as it can, in the group that is on", () => {
    const map = keymap();
    expect(map.stroke(0x61, 0, 0)).toEqual({ keycode: 13, with: [] });
    expect(map.stroke(0x41, 0, 0)).toEqual({ keycode: 13, with: [10] });
    expect(map.stroke(0x40, 0, 0)).toEqual({ keycode: 12, with: [11] });
    expect(map.stroke(characterKeysym("€"), 0, 0)).toEqual({ keycode: 12, with: [10, 11] });
    expect(map.stroke(characterKeysym("ф"), 0, 0)).toBeUndefined();
    expect(map.stroke(characterKeysym("ф"), 1, 0)).toEqual({ keycode: 13, with: [] });
    expect(map.stroke(0x61, 1, 0)).toBeUndefined();
    // A key without a second group makes the same in it.
    expect(map.stroke(0x71, 1, 0)).toEqual({ keycode: 12, with: [] });
  });

  it("a named key is pressed alone, or through a spare key", () => {
    expect(strokeOf(wantedKey("Shift"), layout())).toEqual({ keycode: 10, with: [] });
    expect(strokeOf(wantedKey("Hyper"), layout())).toBeUndefined();
  });
});

describe("spare keys", () => {
  const wanted = (text: string) => [...text].map(wantedCharacter);

  it("have both cases of a letter, and the same twice of what has none", () => {
    expect(wantedCharacter("É").symbols).toEqual([0xe9, 0xc9]);
    for (const character of ["中", "ß", "µ", "ı", "ǅ", "ſ"]) {
      const keysym = characterKeysym(character);
      expect(wantedCharacter(character).symbols).toEqual([keysym, keysym]);
    }
  });

  it("take as much of a text as there are keys for", () => {
    const spare = new SpareKeys();
    const { strokes, changes } = spare.fit(wanted("aéÉ一二三四"), layout());
    expect(strokes).toHaveLength(6);
    expect(strokes.slice(1, 3)).toEqual([
      { keycode: 15, with: [] },
      { keycode: 15, with: [10] },
    ]);
    expect([...changes.keys()]).toEqual([15, 16, 17, 18]);
  });

  it("the least recently used is given others first, and none that is down or used by the same text", () => {
    const spare = new SpareKeys();
    spare.fit(wanted("一二三四"), layout());
    const symbols = [..."一二三四"].map((character) => [characterKeysym(character), characterKeysym(character)]);
    const map = keymap(symbols);
    spare.fit(wanted("一"), layout(map));
    expect([...spare.fit(wanted("五"), layout(map)).changes.keys()]).toEqual([16]);
    expect([...spare.fit(wanted("三六"), layout(map, [18])).changes.keys()]).toEqual([15]);
  });

  it("one that doesn't make what it was given isn't used again", () => {
    const spare = new SpareKeys();
    const { changes } = spare.fit(wanted("é"), layout());
    expect(spare.haveTaken(keymap([[0xe9, 0xe9], [], [], []]), changes)).toBe(false);
    expect([...spare.fit(wanted("é"), layout()).changes.keys()]).toEqual([16]);
  });

  it("all down leave no room", () => {
    expect(new SpareKeys().hasRoom(layout(keymap(), [15, 16, 17, 18]))).toBe(false);
    expect(new SpareKeys().hasRoom(layout(keymap(), [15, 16, 17]))).toBe(true);
  });
});
