import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, open, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import {
  installCuaDriver,
  installedDriver,
  readServed,
  verifyExecutable,
  verifyInstalled,
} from "../../../../drivers/cua-driver/install.js";
import { hostArch, readPin } from "../../../../drivers/cua-driver/pin.js";
import type { Pin } from "../../../../drivers/cua-driver/pin-schema.js";
import { downloadWheel, extractExecutable } from "../../../../drivers/cua-driver/wheel.js";
import { SetupError } from "../../../../src/errors.js";
import { temporaryFolder } from "./real.js";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let pin: Pin;
let wheel: string;
/** The same wheel, its executable changed in one byte. */
let changedWheel: string;
let changedDigest: string;

beforeAll(async () => {
  folder = await temporaryFolder("install");
  pin = await readPin();
  const lines: string[] = [];
  const platforms = [pin.arches[hostArch()].wheel.platform];
  const into = await mkdtemp(join(folder.path, "wheel-"));
  wheel = await downloadWheel({ version: pin.driver.version, platforms, into, onProgress: (line) => lines.push(line) });
  expect(lines.join()).toContain(pin.driver.version);
  [changedWheel, changedDigest] = await changeOneByte();
});

afterAll(() => folder?.[Symbol.asyncDispose]());

async function changeOneByte(): Promise<[string, string]> {
  const scratch = await mkdtemp(join(folder.path, "changed-"));
  const executable = join(scratch, "cua-driver");
  await extractExecutable(wheel, executable);
  await flipByte(executable);
  const file = join(scratch, basename(wheel));
  const program = [
    "import sys, zipfile, hashlib",
    "with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_STORED) as z: z.write(sys.argv[2], 'cua_driver/bin/cua-driver')",
    "print(hashlib.sha256(open(sys.argv[2], 'rb').read()).hexdigest())",
  ].join("\n");
  const { stdout } = await promisify(execFile)("python3", ["-c", program, file, executable]);
  return [file, stdout.trim()];
}

async function flipByte(file: string): Promise<void> {
  await using handle = await open(file, "r+");
  const byte = Buffer.alloc(1);
  const at = 20_000_000;
  await handle.read(byte, 0, 1, at);
  await handle.write(Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, at);
}

/** A data folder of the test's own, gone after it. */
async function dataFolder(): Promise<string> {
  const path = await mkdtemp(join(folder.path, "data-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Every file and folder under a data folder's drivers. */
async function left(dataDir: string): Promise<string[]> {
  return existsSync(join(dataDir, "drivers")) ? readdir(join(dataDir, "drivers"), { recursive: true }) : [];
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(SetupError);
  return `${(thrown as SetupError).message}\n${(thrown as SetupError).hint}`;
}

test("a wheel file is installed without a network or pip, whole, verified and for everyone to read", async () => {
  const dataDir = await dataFolder();
  const umask = process.umask(0o077);
  vi.stubEnv("PATH", "/nonexistent");
  try {
    const installed = await installCuaDriver({ dataDir: join(dataDir, "new"), pin, from: wheel });
    expect(installed).toMatchObject({ ...installedDriver(join(dataDir, "new"), pin), fresh: true });
  } finally {
    vi.unstubAllEnvs();
    process.umask(umask);
  }
  expect(await verifyInstalled(join(dataDir, "new"), pin)).toEqual([]);
  const { executable, skillFolder } = installedDriver(join(dataDir, "new"), pin);
  await verifyExecutable(executable, pin);
  const modes = await Promise.all(
    ["", "drivers", "drivers/cua-driver", "drivers/cua-driver/0.37.0/served/answers.json"].map(async (path) =>
      ((await stat(join(dataDir, "new", path))).mode & 0o777).toString(8),
    ),
  );
  expect(modes).toEqual(["755", "755", "755", "644"]);
  expect(((await stat(executable)).mode & 0o777).toString(8)).toBe("755");
  expect(await readdir(skillFolder)).toContain("SKILL.md");
  expect(await readdir(join(dataDir, "new/drivers/cua-driver"))).toEqual(["0.37.0"]);
});

test("what is installed already is left alone, within a second", async () => {
  const dataDir = await dataFolder();
  await installCuaDriver({ dataDir, pin, from: wheel });
  const { executable } = installedDriver(dataDir, pin);
  const before = (await stat(executable)).ino;
  const start = performance.now();
  expect(await installCuaDriver({ dataDir, pin, program: "/nowhere" })).toMatchObject({ fresh: false });
  expect(performance.now() - start).toBeLessThan(1_000);
  expect((await stat(executable)).ino).toBe(before);
});

test("three installs of the same at the same time all succeed, and one folder is there", async () => {
  const dataDir = await dataFolder();
  const installs = await Promise.all(Array.from({ length: 3 }, () => installCuaDriver({ dataDir, pin, from: wheel })));
  expect(installs.every(({ folder: at }) => at === installedDriver(dataDir, pin).folder)).toBe(true);
  expect(await readdir(join(dataDir, "drivers/cua-driver"))).toEqual(["0.37.0"]);
  expect(await verifyInstalled(dataDir, pin)).toEqual([]);
});

test("an executable with one byte changed is refused, naming both digests, and nothing is left of the install", async () => {
  const dataDir = await dataFolder();
  const message = await refusal(installCuaDriver({ dataDir, pin, from: changedWheel }));
  expect(message).toContain(changedDigest);
  expect(message).toContain(pin.arches[hostArch()].executable.sha256);
  expect(await left(dataDir)).toEqual(["cua-driver"]);
});

test("the start refuses an installed executable with one byte changed, naming both digests", async () => {
  const dataDir = await dataFolder();
  await installCuaDriver({ dataDir, pin, from: wheel });
  const { executable } = installedDriver(dataDir, pin);
  await flipByte(executable);
  const message = await refusal(verifyExecutable(executable, pin));
  expect(message).toContain(changedDigest);
  expect(message).toContain(pin.arches[hostArch()].executable.sha256);
  expect(await verifyInstalled(dataDir, pin)).toHaveLength(1);
});

test("an executable that serves something else than pinned isn't installed, and the difference is named", async () => {
  const dataDir = await dataFolder();
  const other: Pin = structuredClone(pin);
  const tool = other.tools.find(({ name }) => name === "click");
  if (tool) tool.parts.inputSchema = "0".repeat(64);
  expect(await refusal(installCuaDriver({ dataDir, pin: other, from: wheel }))).toContain(
    "tool click: changed (inputSchema)",
  );
  expect(await left(dataDir)).toEqual(["cua-driver"]);
});

test("verify says each difference on a line, and an install repairs them", async () => {
  const dataDir = await dataFolder();
  expect(await verifyInstalled(dataDir, pin)).toEqual([expect.stringContaining("isn't installed")]);
  await installCuaDriver({ dataDir, pin, from: wheel });
  const { folder: at, executable, skillFolder } = installedDriver(dataDir, pin);
  const answers = join(at, "served/answers.json");
  await writeFile(answers, (await readFile(answers, "utf8")).replace("get_screen_size", "got_screen_size"));
  await writeFile(join(skillFolder, "SKILL.md"), "changed");
  await flipByte(executable);
  const differences = await verifyInstalled(dataDir, pin);
  expect(differences).toEqual([
    expect.stringContaining(changedDigest),
    "tool get_screen_size: missing",
    "tool got_screen_size: added",
    "skill file SKILL.md: changed",
  ]);
  expect(await refusal(readServed(dataDir, pin))).toContain("skill file SKILL.md: changed");
  await rm(answers);
  expect(await verifyInstalled(dataDir, pin)).toHaveLength(2);
  expect(await installCuaDriver({ dataDir, pin, from: wheel })).toMatchObject({ fresh: true });
  expect(await verifyInstalled(dataDir, pin)).toEqual([]);
  expect(await readdir(join(dataDir, "drivers/cua-driver"))).toEqual(["0.37.0"]);
});

test("what is served is read back with everything that `cua-driver mcp` serves beside a daemon", async () => {
  const dataDir = await dataFolder();
  await installCuaDriver({ dataDir, pin, from: wheel });
  const served = await readServed(dataDir, pin);
  expect(served.tools).toHaveLength(66);
  expect(Object.keys(served.listKeys)).toEqual(["capability_version", "schema_version"]);
  expect(served.resources).toHaveLength(11);
  expect(served.instructions).toHaveLength(1565);
});

test("an install that is cancelled ends soon and leaves nothing", async () => {
  const dataDir = await dataFolder();
  const cancel = new AbortController();
  const install = installCuaDriver({
    dataDir,
    pin,
    from: wheel,
    signal: cancel.signal,
    onProgress: (line) => line.startsWith("Reading") && cancel.abort(new Error("stopped")),
  });
  await expect(install).rejects.toThrow("stopped");
  expect(await left(dataDir)).toEqual(["cua-driver"]);
});

test("what a killed install left is removed by a later one once it is old", async () => {
  const dataDir = await dataFolder();
  const [old, recent] = ["old", "recent"].map((name) => join(dataDir, "drivers/cua-driver", `.installing-${name}`));
  await Promise.all([old, recent].map((path) => mkdir(path ?? "", { recursive: true })));
  await utimes(old ?? "", 0, 0);
  await installCuaDriver({ dataDir, pin, from: wheel });
  expect((await readdir(join(dataDir, "drivers/cua-driver"))).sort()).toEqual([".installing-recent", "0.37.0"]);
});

test("a wheel of another version, a file that is no wheel, one that isn't there and a bad folder are SetupErrors", async () => {
  const dataDir = await dataFolder();
  const text = join(dataDir, "text.whl");
  await writeFile(text, "no zip");
  expect(await refusal(installCuaDriver({ dataDir, pin, from: text }))).toContain("text.whl");
  expect(await refusal(installCuaDriver({ dataDir, pin, from: join(dataDir, "none.whl") }))).toContain("none.whl");
  const other = join(dataDir, "cua_driver-0.0.1-py3-none-any.whl");
  await copyFile(changedWheel, other);
  expect(await refusal(installCuaDriver({ dataDir, pin, from: other }))).toContain(pin.arches[hostArch()].wheel.sha256);
  expect(await refusal(installCuaDriver({ dataDir: text, pin, from: wheel }))).toContain("AGENTENV_DATA");
  expect(await left(dataDir)).toEqual(["cua-driver"]);
});

test("without a Python that has pip the Debian package to install is named", async () => {
  const into = await dataFolder();
  const request = { version: pin.driver.version, platforms: ["any"], into };
  expect(await refusal(downloadWheel({ ...request, pythons: ["/nonexistent/python3"] }))).toContain("python3-pip");
  // A Python that has neither pip nor venv.
  const bare = join(into, "python3");
  await writeFile(bare, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  expect(await refusal(downloadWheel({ ...request, pythons: [bare] }))).toContain("python3-pip");
});

test("a version that the index doesn't have is a SetupError with pip's reason", async () => {
  const into = await dataFolder();
  const message = await refusal(
    downloadWheel({ version: "0.0.0.1", platforms: ["manylinux_2_31_x86_64"], into, otherwise: "walk" }),
  );
  expect(message).toContain("0.0.0.1");
  expect(message).toContain(", or walk.");
});
