import { expect, test } from "vitest";
import { findProgram, requirePrograms } from "../../../src/desktop/programs.js";

test("a program is found where a person's login looks for it, not where this process does", () => {
  const before = process.env.PATH;
  process.env.PATH = "/nowhere";
  try {
    expect(findProgram("sh")).toMatch(/^\/(usr\/)?bin\/sh$/);
    expect(findProgram("/bin/sh")).toBe("/bin/sh");
    expect(findProgram("/etc")).toBeUndefined();
    expect(findProgram("/etc/passwd")).toBeUndefined();
    expect(findProgram("no-such-program")).toBeUndefined();
  } finally {
    process.env.PATH = before;
  }
});

test("nothing is said about programs that are there", () => {
  expect(() => requirePrograms(["getent", "flock", "setpriv"])).not.toThrow();
});
