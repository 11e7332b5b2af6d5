import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Serving } from "../../../src/index.js";
import { ConformanceEnv } from "../../fakes/conformance-env.js";
import { conformance } from "../../harness/conformance.js";

let serving: Serving;
beforeAll(async () => {
  serving = await new ConformanceEnv().serve();
});
afterAll(async () => {
  await serving.close();
});

describe("MCP's own conformance suite, on an environment of the public surface", () => {
  it("passes all 32 server scenarios of 0.1.16, without a warning", async () => {
    const { scenarios, wrong } = await conformance(serving.url, "mcp-conformance", "--suite", "all");
    expect(wrong).toEqual([]);
    expect(scenarios).toHaveLength(32);
  });

  it("passes the server scenarios of 0.2.0-alpha.12 for 2025-11-25, server-session-lifecycle among them", async () => {
    const version = ["--suite", "all", "--spec-version", "2025-11-25"];
    const { scenarios, wrong } = await conformance(serving.url, "mcp-conformance-next", ...version);
    expect(wrong).toEqual([]);
    expect(scenarios).toContain("server-session-lifecycle");
    expect(scenarios).toHaveLength(33);
  });
});
