import { describe, expect, it } from "vitest";
import { startComputer } from "../../harness/computer.js";
import { conformance } from "../../harness/conformance.js";

const SCENARIOS = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];
/** What a protocol version brings that we don't speak: `ttlMs` and `cacheScope`, from 2026-07-28 on. */
const OF_LATER_VERSIONS = ["sep-2640-skills-get-cache-attributes", "sep-2640-skills-list-cache-attributes"];

describe.each(["bundles/desk", "bundles/reference", "bundles/shop"])(
  "MCP's own conformance suite for skills, on %s",
  (env) => {
    it("passes each of its three scenarios, without a warning", async () => {
      await using serving = await startComputer(env);
      const skipped: string[] = [];
      for (const scenario of SCENARIOS) {
        const options = ["--scenario", scenario, "--spec-version", "2025-11-25", "--force"];
        const { checks, wrong } = await conformance(serving.url, "mcp-conformance-next", ...options);
        expect(checks.length, scenario).toBeGreaterThan(4);
        expect(wrong.filter(({ status }) => status !== "SKIPPED")).toEqual([]);
        skipped.push(...wrong.map(({ id }) => id));
      }
      expect(skipped.sort()).toEqual(OF_LATER_VERSIONS);
    });
  },
);
