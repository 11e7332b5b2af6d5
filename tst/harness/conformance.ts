import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** One check of MCP's own conformance suite. */
export interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

/**
 * Runs the suite of one version on the environment at a URL, and answers which scenarios ran, all checks, and those that
 * aren't as they should be.
 */
export async function conformance(
  url: string,
  version: "mcp-conformance" | "mcp-conformance-next",
  ...options: string[]
): Promise<{ scenarios: string[]; checks: Check[]; wrong: Check[] }> {
  const out = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    const main = require.resolve(`${version}/dist/index.js`);
    const args = [main, "server", "--url", `${url}/mcp`, "--output-dir", out, ...options];
    await run(process.execPath, args, { timeout: 100_000, maxBuffer: 64 << 20 });
    const scenarios = (await readdir(out)).sort();
    const each = await Promise.all(
      scenarios.map(async (name) => JSON.parse(await readFile(join(out, name, "checks.json"), "utf8")) as Check[]),
    );
    const checks = each.flat();
    return {
      scenarios: scenarios.map((name) => name.replace(/^server-(.*?)-\d{4}-\d\d-\d\dT.*$/, "$1")),
      checks,
      wrong: checks.filter(({ status }) => status !== "SUCCESS" && status !== "INFO"),
    };
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
