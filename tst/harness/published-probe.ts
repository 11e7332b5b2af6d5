import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";

const run = promisify(execFile);

/** The published peer, whose conformance probe is the judge of the wire. */
const PACKAGE = "agentenv-framework-protocol[computer]==0.1.379";
const VENV = join(packageRoot, ".agentenv", "venvs", "published-probe-0.1.379");

export interface ProbeReport {
  passed: boolean;
  driver: string;
  checks: {
    check: string;
    name: string;
    status: "passed" | "failed" | "unverified" | "not_applicable";
    detail: string;
  }[];
}

/** The Python of a venv with the published package in it; made once, complete or not at all. */
export async function publishedPython(): Promise<string> {
  const python = join(VENV, "bin", "python");
  if (existsSync(join(VENV, "complete"))) return python;
  await rm(VENV, { recursive: true, force: true });
  await run("python3", ["-m", "venv", VENV], { timeout: 120_000 });
  await run(join(VENV, "bin", "pip"), ["install", "--quiet", PACKAGE], { timeout: 300_000 });
  await run(python, ["-c", `open(${JSON.stringify(join(VENV, "complete.part"))}, "w").close()`]);
  await rename(join(VENV, "complete.part"), join(VENV, "complete"));
  return python;
}

/** Runs the probe as anyone would, from its command line, and reads its report. */
export async function runPublishedProbe(url: string, level: "basic" | "full" = "full"): Promise<ProbeReport> {
  const python = await publishedPython();
  const folder = mkdtempSync(join(tmpdir(), "probe-"));
  const report = join(folder, "report.json");
  try {
    const args = ["-m", "agentenv_protocol.computer.conformance", url, "--level", level, "--json", report];
    // It stages its fixture under one name in the user's home, so that two at a time would take each other's away.
    const lock = join(tmpdir(), "agentenv-published-probe.lock");
    // A failed check exits with 1 and still writes its report.
    await run("flock", [lock, python, ...args], { timeout: 180_000 }).catch((thrown: unknown) => {
      if (!existsSync(report)) throw thrown;
    });
    return JSON.parse(readFileSync(report, "utf8")) as ProbeReport;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
