import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { agentenv, startComputer } from "../../harness/computer.js";

const pin = JSON.parse(readFileSync(join(packageRoot, "mcp.json"), "utf8"));

const pinnedDigest = pin.arches[process.arch === "x64" ? "amd64" : "arm64"].executable.sha256;

let data: string;
let changed: Buffer;
let executable: string;
let wheel: string;
beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), "changed-"));
  // The session user has to get at the executable.
  chmodSync(data, 0o755);
  let installed: string;
  {
    await using computer = await startComputer();
    installed = join(computer.dataDir, "drivers");
  }
  cpSync(installed, join(data, "drivers"), { recursive: true });
  executable = join(data, "drivers", "cua-driver", pin.driver.version, "cua-driver");
  changed = readFileSync(executable);
  changed.writeUInt8(changed.readUInt8(changed.length >> 1) ^ 1, changed.length >> 1);
  writeFileSync(executable, changed);
  wheel = join(data, "changed.whl");
  const zip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').write(sys.argv[2], 'cua_driver/bin/cua-driver')";
  execFileSync("python3", ["-c", zip, wheel, executable]);
});
afterAll(() => rmSync(data, { recursive: true, force: true }));

describe("an executable with one byte changed", () => {
  it("is refused at the start, naming both digests, and never becomes ready", async () => {
    const exit = await agentenv(["up", "bundles/desk", "--port", "0", "--json"], { AGENTENV_DATA: data }).exited;
    expect(exit.code).not.toBe(0);
    expect(exit.stdout).toBe("");
    expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
    const digests = exit.stderr.match(/\b[0-9a-f]{64}\b/g) ?? [];
    expect(digests).toContain(pinnedDigest);
    expect(new Set(digests).size).toBe(2);
  });

  it("is told by driver verify, with exit code 1, and put right by driver install", async () => {
    const verify = () => agentenv(["driver", "verify", "cua-driver", "--json"], { AGENTENV_DATA: data }).exited;
    const broken = await verify();
    expect(broken.code).toBe(1);
    expect(new Set(broken.stdout.match(/\b[0-9a-f]{64}\b/g)).size).toBe(2);
    const installed = await agentenv(["driver", "install", "cua-driver"], { AGENTENV_DATA: data }).exited;
    expect(installed.code, installed.stderr).toBe(0);
    expect((await verify()).code).toBe(0);
  });

  it("is refused by the install when it comes in a wheel", async () => {
    const exit = await agentenv(["driver", "install", "cua-driver", "--from", wheel], {
      AGENTENV_DATA: join(data, "empty"),
    }).exited;
    expect(exit.code).not.toBe(0);
    expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
    const digests = exit.stderr.match(/\b[0-9a-f]{64}\b/g) ?? [];
    expect(digests).toContain(pinnedDigest);
    expect(digests).toContain(createHash("sha256").update(changed).digest("hex"));
    expect(existsSync(join(data, "empty", "drivers", "cua-driver", pin.driver.version))).toBe(false);
  });
});
