import { describe, expect, it } from "vitest";
import { startComputer } from "../harness/computer.js";
import { runPublishedProbe } from "../harness/published-probe.js";

describe("the published conformance probe", () => {
  it.each([
    { env: "bundles/desk", least: 43, isWhole: false },
    // All of its checks: leasing alone doesn't apply.
    { env: "bundles/reference", least: 48, isWhole: true },
  ])(
    "passes at full on $env: at least $least passed, none failed, none unverified",
    async ({ env, least, isWhole }) => {
      await using computer = await startComputer(env);
      const report = await runPublishedProbe(computer.url);
      const by = (status: string) => report.checks.filter((check) => check.status === status);
      expect(by("failed")).toEqual([]);
      expect(by("unverified")).toEqual([]);
      expect(by("passed").length).toBeGreaterThanOrEqual(least);
      if (isWhole) expect(by("not_applicable").map(({ name }) => name)).toEqual([expect.stringMatching(/leas/i)]);
      expect(report.passed).toBe(true);
    },
  );
});
