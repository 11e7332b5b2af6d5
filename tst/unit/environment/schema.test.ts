import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeIssues } from "../../../src/environment/schema.js";

const When = z.union([
  z.object({ at: z.iso.datetime() }),
  z.object({ in_s: z.number().min(5) }),
  z.literal("now"),
  z.array(z.object({ day: z.int() })),
]);
const Input = z.object({ when: When, tags: z.record(z.string().min(2), z.int()).optional() });

function described(value: object): string {
  const { error } = Input.safeParse(value);
  return error === undefined ? "" : describeIssues(error);
}

describe("what is wrong with a value", () => {
  it("says what each of several forms expected, and where", () => {
    const wrong = (what: string) => `when: Invalid input: expected ${what}`;
    expect(described({ when: 7 })).toBe(
      `${wrong("object, received number")}, or ${wrong('"now"')}, or ${wrong("array, received number")}`,
    );
    expect(described({ when: { at: 5 } })).toMatch(
      /^when\.at: .*expected string, received number, or when\.in_s: .*expected number, received undefined, or when: /,
    );
    expect(described({ when: [{ day: "x" }] })).toMatch(/, or when\[0\]\.day: .*expected number, received string$/);
  });

  it("says what was expected of a key", () => {
    expect(described({ when: "now", tags: { x: 1 } })).toMatch(/^tags\.x: Invalid key in record: .*>=2 characters$/);
  });
});
