import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installCuaDriver, readServed, verifyInstalled } from "../../../../drivers/cua-driver/install.js";
import { makePin } from "../../../../drivers/cua-driver/make-pin.js";
import { type Pin, pinFile, pinText, readPin } from "../../../../drivers/cua-driver/pin.js";
import { pinDifferences } from "../../../../drivers/cua-driver/pin-differences.js";
import { temporaryFolder } from "./real.js";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const pins: Record<string, Pin> = {};

beforeAll(async () => {
  folder = await temporaryFolder("move");
  for (const version of ["0.36.0", "0.37.0"]) {
    const scratch = join(folder.path, version);
    await mkdir(scratch);
    pins[version] = await makePin({ version, scratch });
  }
});

afterAll(() => folder?.[Symbol.asyncDispose]());

function pinOf(version: string): Pin {
  const pin = pins[version];
  if (!pin) throw new Error(`no pin of ${version}`);
  return pin;
}

test("the project's mcp.json is what the generator makes of its version's wheels", async () => {
  const { driver } = await readPin();
  expect(pinText(pinOf(driver.version))).toBe(await readFile(pinFile(), "utf8"));
});

test("a pin that was written is read back the same", async () => {
  const file = join(folder.path, "mcp.json");
  await writeFile(file, pinText(pinOf("0.36.0")));
  expect(await readPin(file)).toEqual(pinOf("0.36.0"));
});

test("moving from 0.36.0 to 0.37.0 says which tools, resources and skills change, and moving back says the reverse", () => {
  const there = pinDifferences(pinOf("0.36.0"), pinOf("0.37.0"));
  expect(there).toContain("version: 0.36.0 -> 0.37.0");
  expect(there).toContain("tool get_guide: added");
  expect(there).toContain("tool run_script: changed (description)");
  expect(there).toContain("resource skill://cua-driver/LINUX.md: changed");
  const back = pinDifferences(pinOf("0.37.0"), pinOf("0.36.0"));
  expect(back).toContain("tool get_guide: missing");
  expect(back).toHaveLength(there.length);
});

test("both versions are installed side by side, each as its own pin says, and neither as the other's", async () => {
  const dataDir = await mkdtemp(join(folder.path, "data-"));
  for (const version of ["0.36.0", "0.37.0", "0.36.0"]) {
    await installCuaDriver({ dataDir, pin: pinOf(version) });
    expect(await verifyInstalled(dataDir, pinOf(version))).toEqual([]);
  }
  expect((await readServed(dataDir, pinOf("0.36.0"))).version).toBe("0.36.0");
  const claimed: Pin = { ...pinOf("0.37.0"), driver: pinOf("0.36.0").driver };
  expect(await verifyInstalled(dataDir, claimed)).toContain("tool get_guide: missing");
});
