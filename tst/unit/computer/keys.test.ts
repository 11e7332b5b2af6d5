import { describe, expect, it } from "vitest";
import {
  canonicalKey,
  characterCount,
  chordOf,
  isOneCharacter,
  NAMED_KEYS,
  saidKeys,
  untypeable,
} from "../../../src/computer/keys.js";
import { AgentEnvError } from "../../../src/errors.js";
import { PRINTABLE_KEYS } from "../../../src/index.js";

function refused(run: () => unknown): AgentEnvError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return thrown;
    throw thrown;
  }
  throw new Error("it was not refused");
}

describe("keys", () => {
  it("are one character as it is, or a named key in any case, passed on in W3C case", () => {
    expect(["a", "A", "/", " ", "é", "😀", "\n"].map(canonicalKey)).toEqual(["a", "A", "/", " ", "é", "😀", "\n"]);
    for (const name of NAMED_KEYS) {
      expect([canonicalKey(name), canonicalKey(name.toLowerCase()), canonicalKey(name.toUpperCase())]).toEqual([
        name,
        name,
        name,
      ]);
    }
    expect(new Set(NAMED_KEYS).size).toBe(NAMED_KEYS.length);
    expect(NAMED_KEYS.length).toBe(99);
  });

  it.each([
    ["ctrl", '"Control"'],
    ["Ctrl", '"Control"'],
    ["cmd", '"Meta"'],
    ["Return", '"Enter"'],
    ["esc", '"Escape"'],
    ["pgdn", '"PageDown"'],
    ["Space", '" "'],
    ["Escpe", '"Escape"'],
    ["arrowupp", '"ArrowUp"'],
  ])("that models spell %s are refused with %s as the hint, and never taken for it", (spelling, meant) => {
    const error = refused(() => canonicalKey(spelling));
    expect([error.code, error.applied, error.hint]).toEqual(["invalid_argument", "no", `did you mean ${meant}?`]);
  });

  it("refuses a chord written as one string, saying how one is written", () => {
    for (const written of ["ctrl+s", "Control S", "Control + s"]) {
      expect(refused(() => chordOf([written], "all")).hint).toContain('["Control", "s"]');
    }
  });

  it("refuses an empty chord, an empty key and nonsense, and says what a key is", () => {
    expect(refused(() => chordOf([], "all")).code).toBe("invalid_argument");
    expect(refused(() => canonicalKey("")).code).toBe("invalid_argument");
    expect(refused(() => canonicalKey("qqqqqqqqqqqqqqqqq")).hint).toContain("named W3C key");
  });

  it("refuses a key that the computer lacks as unsupported, the chord whole", () => {
    expect(chordOf(["control", "s"], ["Control", "s"])).toEqual(["Control", "s"]);
    const error = refused(() => chordOf(["Control", "F24"], ["Control", "s"]));
    expect([error.code, error.message]).toEqual(["unsupported", "this computer can't press F24"]);
  });
});

describe("characters", () => {
  it("are code points, not UTF-16 units", () => {
    expect(["", "a", "é", "😀", "a😀b", "👩‍🚀", "\ud83d"].map(characterCount)).toEqual([0, 1, 1, 1, 3, 3, 1]);
    expect(["", "a", "😀", "ab", "😀😀", "\ud83d"].map(isOneCharacter)).toEqual([
      false,
      true,
      true,
      false,
      false,
      true,
    ]);
  });

  it("can't be typed where they are control characters other than newline and tab, or halves of one", () => {
    expect(untypeable("a\tb\nc — ü 東 😀")).toEqual([]);
    expect(untypeable("\u001b[A\r\u0085\u0000\u007f")).toEqual(["U+0000", "U+000D", "U+001B", "U+007F", "U+0085"]);
    expect(untypeable("ok \ud800 bad")).toEqual(["U+D800"]);
  });
});

describe("the keys of a computer, in words,", () => {
  it("are any printable ASCII character where it has all 95 of them, and not a list", () => {
    expect(PRINTABLE_KEYS).toHaveLength(95);
    expect(saidKeys(["Enter", ...PRINTABLE_KEYS, "F1", "F2", "F3"])).toBe(
      "any printable ASCII character, Enter, F1 to F3",
    );
    expect(saidKeys("all")).toBe("every key that W3C names, and any character");
  });

  it("are each of them where there are fewer", () => {
    expect(saidKeys(["a", " ", "Tab", "F1", "F3"])).toBe("a, the space, Tab, F1, F3");
  });
});
