import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Serving } from "../../../src/index.js";
import { ConformanceEnv } from "../../fakes/conformance-env.js";

const run = promisify(execFile);
const require = createRequire(import.meta.url);

interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

let serving: Serving;
beforeAll(async () => {
  serving = await new ConformanceEnv().serve();
});
afterAll(async () => {
  await serving.close();
});

/** Runs the suite of one version, and answers its scenarios and every check that isn't as it should be. */
async function conformance(version: string, ...options: string[]): Promise<{ scenarios: string[]; wrong: Check[] }> {
  const out = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    const main = require.resolve(`${version}/dist/index.js`);
    const args = [main, "server", "--url", `${serving.url}/mcp`, "--suite", "all", "--output-dir", out, ...options];
    await run(process.execPath, args, { timeout: 100_000, maxBuffer: 64 << 20 });
    const scenarios = (await readdir(out)).sort();
    const checks = await Promise.all(
      scenarios.map(async (each) => JSON.parse(await readFile(join(out, each, "checks.json"), "utf8")) as Check[]),
    );
    return {
      scenarios: scenarios.map((each) => each.replace(/^server-(.*?)-\d{4}-\d\d-\d\dT.*$/, "$1")),
      wrong: checks.flat().filter(({ status }) => status !== "SUCCESS" && status !== "INFO"),
    };
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

describe("MCP's own conformance suite, on an environment of the public surface", () => {
  it("passes all 32 server scenarios of 0.1.16, without a warning", async () => {
    const { scenarios, wrong } = await conformance("mcp-conformance");
    expect(wrong).toEqual([]);
    expect(scenarios).toHaveLength(32);
  });

  it("passes the server scenarios of 0.2.0-alpha.12 for 2025-11-25, server-session-lifecycle among them", async () => {
    const { scenarios, wrong } = await conformance("mcp-conformance-next", "--spec-version", "2025-11-25");
    expect(wrong).toEqual([]);
    expect(scenarios).toContain("server-session-lifecycle");
    expect(scenarios).toHaveLength(33);
  });
});
