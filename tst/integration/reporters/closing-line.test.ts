import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");

/** Runs vitest on one fixture and returns its exit code and the last line of its standard output. */
function run(...filters: string[]): { code: number | null; last: string; output: string } {
  const vitest = resolve(root, "node_modules/vitest/vitest.mjs");
  const config = resolve(root, "tst/reporters/fixtures/vitest.config.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", "--config", config, ...filters], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: process.env.HOME, CI: "true" },
  });
  return { code: status, last: stdout.trimEnd().split("\n").at(-1) ?? "", output: stdout + stderr };
}

describe("the closing line", () => {
  test("counts what passed", () => {
    expect(run("passing")).toMatchObject({ code: 0, last: "2 passed, 0 failed" });
  });

  test("counts what failed, and the run fails", () => {
    expect(run("failing")).toMatchObject({ code: 1, last: "1 passed, 1 failed" });
  });

  test("counts skips that declare a reason, by a note or in the name", () => {
    expect(run("declared-skip")).toMatchObject({ code: 0, last: "1 passed, 0 failed, 2 skipped" });
  });

  test("counts a skip that declares no reason as a failure, and names it", () => {
    const { code, last, output } = run("bare-skip");
    expect({ code, last }).toEqual({ code: 1, last: "1 passed, 2 failed" });
    expect(output).toContain("skipped without a reason: bare-skip.fixture.ts > says nothing");
  });

  test("counts a file that can't be loaded as a failure", () => {
    expect(run("broken-file")).toMatchObject({ code: 1, last: "0 passed, 1 failed" });
  });

  test("counts a hook that throws once, and what it kept from running as skipped", () => {
    expect(run("broken-hook")).toMatchObject({ code: 1, last: "0 passed, 1 failed, 1 skipped" });
  });

  test("counts an error outside of every test as a failure", () => {
    expect(run("late-error")).toMatchObject({ code: 1, last: "1 passed, 1 failed" });
  });

  test("counts a run without a test as a failure", () => {
    expect(run("empty")).toMatchObject({ code: 1, last: "0 passed, 1 failed" });
    expect(run("no-such-file")).toMatchObject({ code: 1, last: "0 passed, 1 failed" });
  });

  test("lets a filter by name leave tests out", () => {
    expect(run("passing", "-t", "one")).toMatchObject({ code: 0, last: "1 passed, 0 failed, 1 skipped" });
  });
});
