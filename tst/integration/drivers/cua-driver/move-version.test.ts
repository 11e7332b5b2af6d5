import { cp, mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installCuaDriver, readServed, verifyInstalled } from "../../../../drivers/cua-driver/install.js";
import { changePin, makePin } from "../../../../drivers/cua-driver/make-pin.js";
import { pinFile, pinText, readPin } from "../../../../drivers/cua-driver/pin.js";
import { pinDifferences } from "../../../../drivers/cua-driver/pin-differences.js";
import type { Pin } from "../../../../drivers/cua-driver/pin-schema.js";
import { packageRoot } from "../../../../src/package-root.js";
import { agentenv } from "../../../harness/computer.js";
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

test("the command line moves to 0.36.0 and back: pinned, installed and verified, each change said", async () => {
  const copy = join(folder.path, "package");
  await mkdir(copy);
  for (const part of ["dist", "bundles", "mcp.json", "package.json"]) {
    await cp(join(packageRoot, part), join(copy, part), { recursive: true });
  }
  await symlink(join(packageRoot, "node_modules"), join(copy, "node_modules"));
  // The wheels are here already: pip takes them from these folders.
  const wheels = ["0.36.0", "0.37.0"].flatMap((version) =>
    ["amd64", "arm64"].map((arch) => join(folder.path, version, arch)),
  );
  const environment = {
    AGENTENV_DATA: join(folder.path, "data-cli"),
    PIP_NO_INDEX: "1",
    PIP_FIND_LINKS: wheels.join(" "),
  };
  const run = async (...args: string[]) => {
    const main = join(copy, "dist/src/cli/main.js");
    const { code, stdout, stderr } = await agentenv(["driver", ...args], environment, main).exited;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return stdout;
  };
  const down = await run("pin", "cua-driver", "--version", "0.36.0");
  expect(down).toContain("version: 0.37.0 -> 0.36.0\n");
  expect(down).toContain("tool get_guide: missing\n");
  await run("install", "cua-driver");
  expect(await run("verify", "cua-driver")).toBe("cua-driver 0.36.0 is as pinned\n");
  const up = JSON.parse(await run("pin", "cua-driver", "--version", "0.37.0", "--json"));
  expect(up).toMatchObject({ version: "0.37.0", file: join(copy, "mcp.json") });
  expect(up.changes).toContain("tool get_guide: added");
  await run("install", "cua-driver");
  expect(await run("verify", "cua-driver")).toBe("cua-driver 0.37.0 is as pinned\n");
  expect(await readFile(join(copy, "mcp.json"), "utf8")).toBe(await readFile(pinFile(), "utf8"));
});

test("a version that there is no wheel of leaves the pin as it is, and says why", async () => {
  const file = join(folder.path, "kept.json");
  await writeFile(file, pinText(pinOf("0.37.0")));
  await expect(changePin(file, { version: "0.0.1" })).rejects.toThrow(/pip couldn't download cua-driver 0.0.1/);
  await expect(changePin(file, { version: "newest" })).rejects.toThrow("newest is no version of cua-driver");
  expect(await readFile(file, "utf8")).toBe(pinText(pinOf("0.37.0")));
});
