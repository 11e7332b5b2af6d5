import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { countsOf, ProbeReport, type Status } from "../../src/probe/report.js";
import { agentenv, startComputer } from "../harness/computer.js";
import { publishedPython } from "../harness/published-probe.js";
import { PublishedReference } from "../harness/published-reference.js";

const run = promisify(execFile);

interface Probed {
  readonly code: number | null;
  readonly stdout: string;
  readonly report: ProbeReport;
  /** How many checks came out how, as the published package counts them in the same report. */
  readonly counted: Record<string, number>;
}

const COUNT =
  "import sys; from agentenv_protocol.computer.conformance import ProbeReport; " +
  "print(__import__('json').dumps(ProbeReport.model_validate_json(open(sys.argv[1]).read()).counts()))";

/** Runs our probe as its users do. */
async function probe(url: string): Promise<Probed> {
  const folder = mkdtempSync(join(tmpdir(), "probe-"));
  const file = join(folder, "report.json");
  try {
    await using command = agentenv(["probe", url, "--level", "full", "--json", file]);
    const { code, stdout } = await command.exited;
    const report = ProbeReport.parse(JSON.parse(readFileSync(file, "utf8")));
    const counted = await run(await publishedPython(), ["-c", COUNT, file], { timeout: 60_000 });
    return { code, stdout, report, counted: JSON.parse(counted.stdout) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What came out so, as its names. */
const named = ({ checks }: ProbeReport, ...statuses: Status[]) =>
  checks.filter(({ status }) => statuses.includes(status)).map(({ name, detail }) => `${name}: ${detail}`);

describe("our conformance probe at full", () => {
  it("passes on the desk in all that applies to cua-driver", async () => {
    await using computer = await startComputer("bundles/desk");
    const { code, stdout, report } = await probe(computer.url);
    expect(named(report, "failed", "unverified")).toEqual([]);
    expect(report.checks.filter(({ difference }) => difference)).toEqual([]);
    expect(report.checks.filter(({ status }) => status === "passed").length).toBeGreaterThanOrEqual(86);
    expect(code).toBe(0);
    expect(stdout).toMatch(/desk: \d+ passed, 0 failed, 0 unverified, \d+ not applicable, at level full/);
  });

  it("passes on the reference driver in all but what needs forwarded tools, fewer buttons or leases", async () => {
    await using computer = await startComputer("bundles/reference");
    const { code, report, counted } = await probe(computer.url);
    expect(counted).toEqual(countsOf(report.checks));
    expect(named(report, "failed", "unverified")).toEqual([]);
    expect(named(report, "not_applicable")).toEqual([
      expect.stringContaining("it has all buttons"),
      expect.stringContaining("it serves no tools but computer/v1's"),
      expect.stringContaining("the driver declares no leasing"),
    ]);
    expect(Object.values(report.extensions).every((verdict) => verdict === "verified")).toBe(true);
    expect(code).toBe(0);
  });

  it("passes on the published Python driver, but for what it does otherwise by its own rules", async () => {
    await using driver = await PublishedReference.start();
    const { code, stdout, report } = await probe(driver.url);
    expect(named(report, "failed", "unverified")).toEqual([]);
    const differences = report.checks.filter(({ difference }) => difference);
    expect(differences.map(({ name }) => name)).toEqual([
      "each session has a latest frame of its own",
      "input of others since a frame is counted, and one's own isn't",
      "keys that a session holds are released when it ends",
    ]);
    for (const { detail } of differences) expect(detail).toContain("all sessions for one caller");
    expect(report.checks.filter(({ status }) => status === "passed").length).toBeGreaterThanOrEqual(93);
    expect(stdout).toContain("3 explained differences");
    expect(code).toBe(0);
    // The first time its packages are installed.
  }, 400_000);
});

describe("agentenv probe", () => {
  it("exits with 2 where there is nothing to probe", async () => {
    await using command = agentenv(["probe", "http://127.0.0.1:9"]);
    const { code, stderr } = await command.exited;
    expect(code).toBe(2);
    expect(stderr).toContain("http://127.0.0.1:9 can't be used");
  });
});
