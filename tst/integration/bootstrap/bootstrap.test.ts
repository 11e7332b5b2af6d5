import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
// @ts-expect-error: it has no types, for it runs before there is a compiler.
import { WITH_VALUE } from "../../../scripts/bootstrap/env-choice.mjs";
import { putCommand } from "../../../src/cli/put.js";
import { upCommand } from "../../../src/cli/up.js";
import { until } from "../../harness/until.js";
import { Clone, type Ended, ended, isAlive } from "./clone.js";

const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;

let clone: Clone;

beforeEach(() => {
  clone = new Clone();
});

afterEach(() => {
  clone.remove();
});

describe("a set-up", () => {
  test("installs, builds and fetches the driver once; a second one says nothing and takes no time", async () => {
    const first = await clone.setUp();
    expect(first).toMatchObject({ code: 0, stdout: "" });
    for (const step of ["npm packages", "Build", "cua-driver"]) {
      expect(first.stderr).toMatch(new RegExp(`^${step} …\n(.*\n)?${step} done in \\d+\\.\\d s$`, "m"));
    }
    expect(clone.calls()).toHaveLength(1);

    const second = await clone.setUp();
    expect(second).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(clone.calls()).toHaveLength(1);
    console.log(`a set-up with nothing to do: ${Math.round(second.ms)} ms`);
    expect(second.ms).toBeLessThan(3_000);
  });

  test("installs again what was removed, and only that", async () => {
    await clone.setUp();
    rmSync(clone.path("node_modules"), { recursive: true });
    expect((await clone.setUp()).stderr).toMatch(/^npm packages …\nnpm packages done in \S+ s\n$/);
    rmSync(clone.path("dist/src/cli/main.js"));
    expect((await clone.setUp()).stderr).toMatch(/^Build …\nBuild done in \S+ s\n$/);
    expect(existsSync(clone.path("dist/src/cli/main.js"))).toBe(true);
  });

  test("builds a source that changed, and leaves no output of one that is gone", async () => {
    clone.write("src/old.ts", "export const old = 1;\n");
    await clone.setUp("cli");
    expect(existsSync(clone.path("dist/src/old.js"))).toBe(true);
    rmSync(clone.path("src/old.ts"));
    clone.write("src/fresh.ts", "export const fresh = 1;\n");
    await clone.setUp("cli");
    const outputs = readdirSync(clone.path("dist/src")).sort();
    expect(outputs).toEqual(["cli", "fresh.d.ts", "fresh.js", "fresh.js.map"]);
  });

  test("is what npm pack does first, so that the package of a fresh clone holds what was built", async () => {
    expect((await clone.run("npm", ["pack", "--pack-destination", clone.folder])).code).toBe(0);
    const { stdout } = await clone.run("tar", ["-tzf", "clone-1.0.0.tgz"]);
    expect(stdout.split("\n")).toContain("package/dist/src/cli/main.js");
  });

  test("writes the JSON Schema that mcp.json names", async () => {
    clone.write("drivers/cua-driver/pin-schema.ts", 'export const pinJsonSchema = () => ({ type: "object" });\n');
    await clone.setUp("cli");
    const schema = () => JSON.parse(readFileSync(clone.path("dist/mcp.schema.json"), "utf8"));
    expect(schema()).toEqual({ type: "object" });
    rmSync(clone.path("dist/mcp.schema.json"));
    await clone.setUp("cli");
    expect(schema()).toEqual({ type: "object" });
  });

  test("fetches no cua-driver for an env that names another driver, found from where the person stands", async () => {
    clone.write("mine/env.toml", '# user = "nobody"\ntype = "computer"\ndriver = "reference"\n');
    const here = { env: { INIT_CWD: clone.folder } };
    const args = ["scripts/bootstrap.mjs", "run", "--", "--port", "0", "./mine"];
    expect((await clone.run(process.execPath, args, here)).code).toBe(0);
    expect(clone.calls()).toEqual([]);
  });

  test.each([
    ["--tokens", "tokens"],
    ["--host", "0.0.0.0", "--tokens", "tokens", "--log-file", "package.json"],
    ["--log-file=package.json"],
    ["bundles/desk"],
    ["bundles/desk/env.toml"],
  ])("of the desk is what %s wants: an option's value is no env", async (...args) => {
    clone.write("elsewhere/tokens", "agent:0123456789abcdef\n");
    clone.write("elsewhere/package.json", "{}");
    const here = { env: { INIT_CWD: clone.path("elsewhere") } };
    const ended = await clone.run(process.execPath, ["scripts/bootstrap.mjs", "run", "--", ...args], here);
    expect(ended).toMatchObject({ code: 0, stdout: "" });
    expect(clone.calls()).toEqual([expect.stringContaining("driver install cua-driver")]);
  });

  test("leaves an env that it can't read to the command, which says what is wrong with it", async () => {
    clone.write("a-file", "");
    mkdirSync(clone.path("no-file/env.toml"), { recursive: true });
    mkdirSync(clone.path("broken"));
    clone.write("broken/envs", "");
    symlinkSync("loop", clone.path("loop"));
    mkdirSync(clone.path("looped"));
    symlinkSync("env.toml", clone.path("looped/env.toml"));
    for (const env of [
      "a-file",
      "no-file",
      "broken",
      "loop",
      "looped",
      "looped/env.toml",
      "a-file/env.toml",
      "nowhere",
    ]) {
      const ended = await clone.run(process.execPath, ["scripts/bootstrap.mjs", "run", "--", env]);
      expect({ env, ...ended }).toMatchObject({ code: 0, stdout: "", stderr: expect.not.stringContaining("failed") });
    }
    expect(clone.calls()).toEqual([]);
  });

  test("knows which options of up and put take a value", () => {
    const options = [upCommand, putCommand].flatMap((command) => command.options);
    const withValue = options.flatMap(({ required, long }) => (required && long ? [long] : []));
    expect([...WITH_VALUE].sort()).toEqual([...new Set(withValue)].sort());
  });

  test("that fails says what failed, its last lines and what to do, and no stack", async () => {
    clone.write("src/wrong.ts", 'export const wrong: number = "one";\n');
    const { code, stderr } = await clone.setUp("cli");
    expect(code).toBe(1);
    expect(stderr).toContain("Build failed after");
    expect(stderr).toContain("src/wrong.ts");
    expect(stderr).toContain("Correct what the compiler names");
    expect(stderr).not.toMatch(/^\s+at /m);
    expect((await clone.setUp("cli")).code).toBe(1);
  });

  test("names a pin that is missing", async () => {
    rmSync(clone.path("mcp.json"));
    const { code, stderr } = await clone.setUp();
    expect(code).toBe(1);
    expect(stderr).toContain("mcp.json is missing");
  });
});

const WAITING = "Another set-up is running in this clone: waiting for it.\n";

const PATIENCE = { ms: 20_000 };

/** What the stand-in command line was asked, once it has been. */
async function call(index: number): Promise<string> {
  return (await until(() => clone.calls()[index], Boolean, PATIENCE)) ?? "";
}

/** A set-up that has said that it waits; its end is wrapped, so as not to be waited for here. */
async function waitingSetUp(): Promise<[Promise<Ended>]> {
  const child = clone.start(process.execPath, ["scripts/bootstrap.mjs", "run"]);
  const end = ended(child);
  let said = "";
  child.stderr?.on("data", (chunk: string) => {
    said += chunk;
  });
  await until(() => said.includes(WAITING), Boolean, PATIENCE);
  return [end];
}

describe("two set-ups of one clone", () => {
  test("take turns, and the second finds the work done", async () => {
    clone.write("hold", "");
    const first = clone.setUp();
    await call(0);
    const [second] = await waitingSetUp();
    rmSync(clone.path("hold"));
    expect((await first).code).toBe(0);
    expect(await second).toMatchObject({ code: 0, stderr: WAITING });
    expect(clone.calls()).toHaveLength(1);
  });

  test("wait for what a killed one left running, and then go on", async () => {
    clone.write("hold", "");
    const first = clone.start(process.execPath, ["scripts/bootstrap.mjs", "run"]);
    const firstEnd = ended(first);
    await call(0);
    first.kill("SIGKILL");
    expect((await firstEnd).signal).toBe("SIGKILL");
    const [second] = await waitingSetUp();
    rmSync(clone.path("hold"));
    expect(await second).toMatchObject({ code: 0, stderr: WAITING });
    expect(clone.calls()).toHaveLength(1);
  });

  test("recover from one that was killed while npm emptied node_modules", async () => {
    await clone.setUp();
    rmSync(clone.path("node_modules"), { recursive: true });
    clone.write("node_modules/typescript/package.json", "{ half");
    expect((await clone.setUp()).stderr).toMatch(/^npm packages …\nnpm packages done in \S+ s\n$/);
    expect((await clone.setUp()).stderr).toBe("");
  });
});

describe("a signal to npm", () => {
  test("during the set-up ends the set-up and what it runs", async () => {
    clone.write("hold", "");
    const npm = clone.start("npm", ["start"]);
    const end = ended(npm);
    const pid = Number((await call(0)).split(" ")[0]);
    npm.kill("SIGTERM");
    const { code, signal, stderr } = await end;
    expect(code ?? signal).not.toBe(0);
    expect(stderr).toContain("Stopped by SIGTERM");
    expect(isAlive(pid)).toBe(false);
  });

  test("after the set-up reaches the server itself, which took the shell's place", async () => {
    await clone.setUp();
    clone.write("hold", "");
    const npm = clone.start("npm", ["start", "--", "./mine", "--port", "0"]);
    const end = ended(npm);
    const [pid, person, ...args] = (await call(1)).split(" ");
    expect([person, ...args]).toEqual([clone.folder, "up", "./mine", "--port", "0"]);
    npm.kill("SIGTERM");
    await end;
    await until(() => !isAlive(Number(pid)));
  });
});

describe("without root", () => {
  test("missing Debian packages are named in a line to run, and nothing is installed", async () => {
    expect((await clone.setUp("tools")).code).toBe(0);
    clone.write("fake/dpkg-query", '#!/bin/sh\nfor name; do [ $name = xvfb ] || echo "$name ii "; done\n');
    chmodSync(clone.path("fake/dpkg-query"), 0o755);
    // The Node that runs the tests may lie where nobody else can read.
    copyFileSync(process.execPath, clone.path("node"));
    spawnSync("chown", ["-R", `${NOBODY}:${NOBODY}`, clone.folder]);
    const { code, stderr } = await clone.run(clone.path("node"), ["scripts/bootstrap.mjs", "install"], {
      ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
      env: { PATH: `${clone.path("fake")}:${process.env.PATH}`, HOME: clone.folder },
    });
    expect(code).toBe(1);
    expect(stderr).toContain("Debian packages are missing: xvfb\n");
    expect(stderr).toContain("\n  sudo apt-get update && sudo apt-get -y install --no-install-recommends xvfb\n");
    expect(existsSync(join(clone.folder, "dist"))).toBe(false);
  });
});
