import { describe, expect, it } from "vitest";
import { elementsOf, membersOf, memberText, parseExact, withMember } from "../../../src/protocol/json-text.js";

describe("the members of a JSON text", () => {
  it("lie where JSON.parse finds them, in any spelling", () => {
    const text =
      ' { "a" : [1, {"}": "]\\\\"}] ,"b":"x\\"y","c"\t:\n-0.0e-5, "d":{}, "e":null,"\\u0066":true, "a": 9007199254740993 } ';
    const members = membersOf(text);
    const parts = Object.fromEntries(
      [...(members ?? [])].map(([name, { start, end }]) => [name, text.slice(start, end)]),
    );
    expect(parts).toEqual({ a: "9007199254740993", b: '"x\\"y"', c: "-0.0e-5", d: "{}", e: "null", f: "true" });
    expect(memberText("{}", "a")).toBeUndefined();
    expect(membersOf("[1]")).toBeUndefined();
  });

  it("are replaced or added without touching the rest", () => {
    expect(withMember('{"a": 1.0, "b":2}', "a", '"x"')).toBe('{"a": "x", "b":2}');
    expect(withMember('{"a": 1.0 }', "b", "[]")).toBe('{"a": 1.0 ,"b":[]}');
    expect(withMember("{}", "b", "0")).toBe('{"b":0}');
  });

  it("of an array come one by one", () => {
    const text = '[ 1.0 , "],", {"a":[2]},[ ] ]';
    expect(elementsOf(text)?.map(({ start, end }) => text.slice(start, end))).toEqual([
      "1.0",
      '"],"',
      '{"a":[2]}',
      "[ ]",
    ]);
    expect(elementsOf("[]")).toEqual([]);
    expect(elementsOf("{}")).toBeUndefined();
  });
});

describe("parseExact", () => {
  it("keeps each number as it was written, and all else as JSON.parse reads it", () => {
    const text = '{"a":9007199254740993,"b":[1.0,-0,1e400,7],"c":"1.0","d":null}';
    expect(JSON.stringify(parseExact(text))).toBe(text);
    expect((parseExact(text) as { b: unknown[] }).b[3]).toBe(7);
  });
});
