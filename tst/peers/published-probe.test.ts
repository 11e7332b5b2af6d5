import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Computer, startComputer } from "../harness/computer.js";
import { runPublishedProbe } from "../harness/published-probe.js";

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

describe("the published conformance probe", () => {
  it("passes at full on the desk: at least 43 passed, none failed, none unverified", async () => {
    const report = await runPublishedProbe(computer.url);
    const by = (status: string) => report.checks.filter((check) => check.status === status);
    expect(by("failed")).toEqual([]);
    expect(by("unverified")).toEqual([]);
    expect(by("passed").length).toBeGreaterThanOrEqual(43);
    expect(report.passed).toBe(true);
  });
});
