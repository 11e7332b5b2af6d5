import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/protocol/canonical-json.js";

// The samples are those of RFC 8785: sections 3.2.2 and 3.2.3, appendix B.

test("the RFC's first sample comes out as the RFC prints it", () => {
  const input = String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`;
  expect(canonicalJson(JSON.parse(input))).toBe(
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
      String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  );
});

test("keys are sorted by UTF-16 code units, so a surrogate pair comes before U+FB33", () => {
  const value = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  expect(Object.values(JSON.parse(canonicalJson(value)) as object).length).toBe(7);
  expect([...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map((match) => match[1])).toEqual([
    "Carriage Return",
    "One",
    "Control",
    "Latin Small Letter O With Diaeresis",
    "Euro Sign",
    "Emoji: Grinning Face",
    "Hebrew Letter Dalet With Dagesh",
  ]);
});

test.each([
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555555", "333333333.3333333"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
])("the number with the bits %s is written %s", (bits, text) => {
  expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
});

test("what JSON can't hold is refused, wherever it stands", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, "\ud83d", { a: [undefined] }, [() => 1]]) {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  }
});
