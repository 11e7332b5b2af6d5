import { expect, test } from "vitest";
import { jsonDifferences } from "../../../../drivers/cua-driver/compare/json-differences.js";

test("texts that are the same have no difference", () => {
  expect(jsonDifferences('{"a":1.0}', '{"a":1.0}')).toEqual([]);
});

test.each([
  ['{"a":[1,{"b":2}]}', '{"a":[1,{"b":3}]}', ["/a/1/b: ours 2 theirs 3"]],
  ['{"a":1}', '{"a":1,"b":null}', ["/b: ours nothing theirs null"]],
  ["[1]", '{"0":1}', ['ours [1] theirs {"0":1}']],
  ['{"a":"x"}', '{"a":"y","c":1}', ['/a: ours "x" theirs "y"', "/c: ours nothing theirs 1"]],
])("%s and %s differ by place, each with both sides", (ours, theirs, expected) => {
  expect(jsonDifferences(ours, theirs)).toEqual(expected);
});

test.each([
  ['{"a":1,"b":2}', '{"b":2,"a":1}'],
  ['{"n":1.0}', '{"n":1}'],
])("%s and %s, the same value written otherwise, differ too", (ours, theirs) => {
  expect(jsonDifferences(ours, theirs)).toEqual([`written otherwise: ours ${ours} theirs ${theirs}`]);
});

test("at most five places are named", () => {
  expect(jsonDifferences("[1,2,3,4,5,6,7]", "[0,0,0,0,0,0,0]")).toHaveLength(5);
});
