import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostArch, readPin } from "../../../drivers/cua-driver/pin.js";
import { downloadWheel } from "../../../drivers/cua-driver/wheel.js";
import { agentenv, agentenvMain, type Exit, RunningCommand } from "../../harness/computer.js";
import { allProcesses, isRoot } from "../../harness/desktop.js";
import { until } from "../../harness/until.js";
import { WheelIndex } from "../../harness/wheel-index.js";

const lab = mkdtempSync(join(tmpdir(), "driver-install-"));
afterAll(() => rmSync(lab, { recursive: true, force: true }));

let version: string;
let wheel: string;
beforeAll(async () => {
  const pin = await readPin();
  version = pin.driver.version;
  wheel = await downloadWheel({ version, platforms: [pin.arches[hostArch()].wheel.platform], into: lab });
});

let count = 0;
function dataFolder(): string {
  count += 1;
  return join(lab, `data-${count}`);
}

const driversOf = (dataDir: string) => {
  const folder = join(dataDir, "drivers", "cua-driver");
  return existsSync(folder) ? readdirSync(folder) : [];
};

const verified = async (dataDir: string) =>
  (await agentenv(["driver", "verify", "cua-driver"], { AGENTENV_DATA: dataDir }).exited).stdout;

/** The command line with no network at all, in a namespace of its own. */
function offline(args: readonly string[], dataDir: string): Promise<Exit> {
  const unshare = ["unshare", ...(isRoot ? [] : ["--map-root-user"]), "--net"];
  const [file = "", ...rest] = [...unshare, process.execPath, agentenvMain, ...args];
  const env = { ...process.env, AGENTENV_DATA: dataDir };
  return new RunningCommand(spawn(file, rest, { env, stdio: ["ignore", "pipe", "pipe"] })).exited;
}

describe("agentenv driver install", () => {
  it("installs from a wheel file without any network, in two processes at once, and one folder is there", async () => {
    const dataDir = dataFolder();
    const args = ["driver", "install", "cua-driver", "--from", wheel];
    const exits = await Promise.all([offline(args, dataDir), offline(args, dataDir)]);
    expect(exits.map(({ code, stderr }) => (code === 0 ? code : stderr))).toEqual([0, 0]);
    for (const { stdout } of exits) expect(stdout).toContain(`${version} installed in ${dataDir}`);
    expect(driversOf(dataDir)).toEqual([version]);
    expect(await verified(dataDir)).toBe(`cua-driver ${version} is as pinned\n`);
    const again = await offline(["driver", "install", "cua-driver"], dataDir);
    expect(again.stdout).toContain(`${version} is installed in ${dataDir}`);
  });

  it("looks at the file that it is to install from, even where the driver is installed", async () => {
    const dataDir = dataFolder();
    const from = (file: string) => offline(["driver", "install", "cua-driver", "--from", file], dataDir);
    expect((await from(wheel)).code).toBe(0);
    expect(await from(wheel)).toMatchObject({ code: 0, stdout: expect.stringContaining("is installed in") });
    const other = join(lab, "other.whl");
    writeFileSync(other, "");
    for (const [file, says] of [
      [join(lab, "nowhere.whl"), /the wheel can't be read: ENOENT[\s\S]*name the file/],
      [other, /other\.whl isn't cua-driver [\d.]+ as pinned:\n.*the wheel's sha256 is/],
    ] as const) {
      expect(await from(file)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(says) });
    }
    expect(driversOf(dataDir)).toEqual([version]);
  });

  it("downloads from the index that pip is set up with, with a progress bar where somebody looks and none in a log", async () => {
    await using index = await WheelIndex.start(wheel);
    const logged = await agentenv(["driver", "install", "cua-driver"], {
      ...index.environment,
      AGENTENV_DATA: dataFolder(),
    }).exited;
    expect([logged.code, index.downloads]).toEqual([0, 1]);
    expect(logged.stderr).toMatch(
      /^Downloading cua-driver [\d.]+ \(about 35 MB\)\nVerifying .*\nReading what it serves\n/,
    );
    expect(logged.stderr).not.toContain("\r");
    const line = `${process.execPath} ${agentenvMain} driver install cua-driver`;
    const env = { ...process.env, ...index.environment, AGENTENV_DATA: dataFolder(), TERM: "xterm", COLUMNS: "100" };
    const terminal = spawn("script", ["-qefc", line, "/dev/null"], { env, stdio: ["ignore", "pipe", "pipe"] });
    const { code, stdout } = await new RunningCommand(terminal).exited;
    expect([code, index.downloads]).toEqual([0, 2]);
    // pip draws it anew again and again, up to the whole.
    expect(stdout).toMatch(/\b\d+\.\d\/(\d+\.\d) MB[\s\S]*\b(\d+\.\d)\/\2 MB|━{20}/);
    expect(stdout).toContain(`${version} installed in`);
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "ended by %s in the middle leaves no program running and nothing on the disk",
    async (signal) => {
      await using index = await WheelIndex.start(wheel);
      index.stalls = true;
      const dataDir = dataFolder();
      await using command = agentenv(["driver", "install", "cua-driver"], {
        ...index.environment,
        AGENTENV_DATA: dataDir,
      });
      await until(
        () => index.downloads,
        (downloads) => downloads > 0,
        { ms: 30_000, what: "a download" },
      );
      const pips = () => allProcesses().filter(({ pid }) => commandOf(pid).includes(dataDir));
      expect(pips().length).toBeGreaterThan(0);
      command.child.kill(signal);
      const exit = await command.exited;
      expect(exit.code ?? exit.signal).toSatisfy((how) => how === signal || how === (signal === "SIGINT" ? 130 : 143));
      expect(exit.stderr).not.toMatch(/^\s+at /m);
      await until(pips, ({ length }) => length === 0, { ms: 2_000, what: "the end of pip" });
      expect(driversOf(dataDir)).toEqual([]);
    },
  );
});

function commandOf(pid: number): string {
  return spawnSync("cat", [`/proc/${pid}/cmdline`], { encoding: "utf8" }).stdout;
}

describe("agentenv driver pin", () => {
  it("of a version that there isn't says what to do that pin can do", async () => {
    await using index = await WheelIndex.start(wheel);
    const exit = await agentenv(["driver", "pin", "cua-driver", "--version", "99.0"], index.environment).exited;
    expect(exit).toMatchObject({ code: 1, stdout: "" });
    expect(exit.stderr).toMatch(/couldn't download cua-driver 99\.0[\s\S]*name a version that the index has/);
    expect(exit.stderr).not.toContain("--from");
  });
});
