import { spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EnvStore } from "../../../src/bundles/env-store.js";
import { McpClient } from "../../../src/mcp/client.js";
import { packageRoot } from "../../../src/package-root.js";
import { openStore } from "../../../src/stores/open-store.js";
import { agentenv, agentenvMain, envFolder, RunningCommand } from "../../harness/computer.js";
import { isRoot, sessionUser } from "../../harness/desktop.js";
import { NotesBundle } from "../../harness/notes-env.js";
import { childrenOf, processesWith } from "../../harness/processes.js";
import { SkillFolder, skillText } from "../../harness/skill-folder.js";
import { until } from "../../harness/until.js";

let folder: string;
let url: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "put-"));
  url = pathToFileURL(join(folder, "store")).href;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (bundle: string, ...args: string[]) => agentenv(["put", bundle, "--store", url, ...args]);

async function putId(bundle: string): Promise<string> {
  const exit = await put(bundle, "--json").exited;
  expect(exit.code, exit.stderr).toBe(0);
  return JSON.parse(exit.stdout).envs[0].id;
}

async function records(of = url): Promise<string[]> {
  await using store = await openStore(of);
  return (await new EnvStore(store).list()).map(({ id }) => id);
}

describe("an env that is a class", () => {
  it("is put and run from its record, with its skill and what it includes, and none of the folder that it came from", async () => {
    using skill = new SkillFolder("sorting", { "SKILL.md": skillText("sorting") });
    const added = await agentenv(["skills", "add", skill.folder, "--store", url]).exited;
    const digest = added.stdout.trim();
    let id: string;
    {
      using bundle = await NotesBundle.make(`[skills]\ninclude = ["${digest}", "skills/filing"]\n`);
      bundle.write("envs/notes/skills/filing/SKILL.md", skillText("filing"));
      bundle.write("envs/notes/node_modules/left-pad/index.js", "a package");
      id = await putId(bundle.folder);
      expect(await putId(bundle.folder)).toBe(id);
    }
    expect(await records()).toEqual([id]);
    const shown = JSON.parse((await agentenv(["envs", "show", id, "--store", url, "--json"]).exited).stdout);
    expect(shown.skills.map(({ name }: { name: string }) => name)).toEqual(["filing", "noting", "sorting"]);
    expect(shown.skills[2].digest).toBe(digest);
    expect(shown.files.map(({ path }: { path: string }) => path)).toEqual([
      "env.js",
      "env.toml",
      "package.json",
      "skills/filing/SKILL.md",
    ]);
    expect(shown.metadata.validated_boot.report).toMatchObject({ passed: true, level: "basic" });
    await using command = agentenv(["run", id.slice(0, 20), "--store", url, "--port", "0", "--json"]);
    await using mcp = await McpClient.connect((await command.ready()).url);
    expect((await mcp.call("read", { number: 7 })).content).toEqual([{ type: "text", text: "note 7" }]);
  });

  it("is run by several at once in an empty data folder, and by its session user alone", async () => {
    using bundle = await NotesBundle.make();
    const id = await putId(bundle.folder);
    const data = join(folder, "data");
    chmodSync(folder, 0o755);
    mkdirSync(data);
    chownSync(data, sessionUser.uid, sessionUser.gid);
    const args = [agentenvMain, "run", id, "--store", url, "--port", "0", "--json"];
    const asUser = ["--reuid", String(sessionUser.uid), "--regid", String(sessionUser.gid), "--init-groups"];
    const env = { PATH: process.env.PATH, HOME: sessionUser.home, AGENTENV_DATA: data };
    const start = () =>
      isRoot
        ? spawn("setpriv", [...asUser, "--", process.execPath, ...args], { env })
        : spawn(process.execPath, args, { env });
    const commands = Array.from({ length: 4 }, () => new RunningCommand(start()));
    try {
      for (const command of commands) {
        await using mcp = await McpClient.connect((await command.ready()).url);
        expect((await mcp.call("read", { number: 7 })).content).toEqual([{ type: "text", text: "note 7" }]);
      }
    } finally {
      await Promise.all(commands.map((command) => command[Symbol.asyncDispose]()));
    }
  });

  it("that is one of several stores nothing when another of them fails", async () => {
    using bundle = await NotesBundle.make();
    // Whoever answers a tool that there isn't tells an agent that it worked.
    const all = "export class All extends Notes {\n  onUnknownTool() {\n    return { content: [] };\n  }\n}\n";
    bundle.write("envs/zero/env.js", `${readFileSync(join(bundle.env, "env.js"), "utf8")}\n${all}`);
    bundle.write("envs/zero/package.json", '{ "type": "module" }\n');
    bundle.write("envs/zero/env.toml", 'type = "class"\nmodule = "env.js#All"\n');
    const exit = await put(bundle.folder).exited;
    expect(exit.code).toBe(1);
    expect(exit.stdout).toBe("FAIL X a tool that it doesn't have is refused: it was answered\n");
    expect(exit.stderr).toContain("office/zero failed a check of the probe: nothing was stored");
    expect(existsSync(join(folder, "store"))).toBe(false);
  });

  it("without tools is put, as what it has is right", async () => {
    using bundle = await NotesBundle.make();
    const none = 'import { Environment } from "agent-env";\nexport class Notes extends Environment {}\n';
    bundle.write("envs/notes/env.js", none);
    const id = await putId(bundle.folder);
    expect(await records()).toEqual([id]);
  });

  it("that doesn't start is told with what it said, and stores nothing", async () => {
    using bundle = await NotesBundle.make();
    bundle.write("envs/notes/env.js", 'throw new Error("no such luck");\n');
    const exit = await put(bundle.folder).exited;
    expect(exit).toMatchObject({ code: 1, stdout: "" });
    expect(exit.stderr).toMatch(/office\/notes didn't start: exit code 1\n.*no such luck/s);
    expect(exit.stderr).toContain(`  agentenv up ${bundle.env} shows more\n`);
    expect(exit.stderr).not.toMatch(/agentenv: agentenv:/);
    expect(existsSync(join(folder, "store"))).toBe(false);
  });
});

describe("agentenv put refuses, before it starts anything,", () => {
  const refused = async (bundle: string, ...says: (string | RegExp)[]) => {
    const exit = await put(bundle).exited;
    for (const each of says) expect(exit.stderr).toMatch(each);
    expect(exit).toMatchObject({ code: 1, stdout: "" });
    expect(exit.stderr).not.toMatch(/starting|^\s+at .*:\d+/m);
  };

  it("a folder that is no bundle, with what is expected", async () => {
    await refused(folder, /has neither env\.toml nor a folder envs/, /envs\/ENV\/env\.toml/);
  });

  it("an alias that there isn't and a file that isn't there, of any of its envs", async () => {
    using bundle = await NotesBundle.make();
    bundle.write("envs/other/env.toml", 'type = "computer"\ndriver = "cua"\n');
    await refused(bundle.folder, /other\/env\.toml: driver: no driver is called "cua"/);
    bundle.write("envs/other/env.toml", 'type = "computer"\ndriver = "reference"\n[data]\nfiles = { "a" = "b" }\n');
    await refused(bundle.folder, /other\/env\.toml: data\.files\."a"/);
    bundle.write("envs/other/env.toml", 'type = "class"\nmodule = "lost.js#Lost"\n');
    await refused(bundle.folder, /other\/env\.toml: module: there is no file .*lost\.js/);
    bundle.write("envs/other/env.toml", 'type = "computer"\ndriver = "reference"\n[skills]\ninclude = ["../../x"]\n');
    await refused(bundle.folder, /skills\.include: "\.\.\/\.\.\/x" lies outside of the env's folder/);
  });

  it("an env whose class is a part of agent-env, which no record could hold", async () => {
    await refused(
      join(packageRoot, "bundles/shop"),
      /shop\.ts#Shop is a part of agent-env, and runs as its build made it/,
      /holds the env's folder alone/,
      /agentenv init my-env/,
    );
  });

  it("a store that can't be used", async () => {
    using bundle = await NotesBundle.make();
    url = "s3://no-such-bucket/x?endpoint=http://127.0.0.1:1&checksums=md6";
    await refused(bundle.folder, /checksums=md6/);
  });
});

describe("agentenv run refuses", () => {
  it("an id that isn't there, or is none, and writes nothing", async () => {
    const data = join(folder, "data");
    for (const [id, says] of [
      ["0123456789", /has no env 0123456789/],
      ["shop", /is no id of an env/],
    ] as const) {
      const exit = await agentenv(["run", id, "--store", url], { AGENTENV_DATA: data }).exited;
      expect(exit).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(says) });
    }
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("a put that is killed", () => {
  it.each(["rename", "renamed"])(
    "at any %s of an object leaves no record, or the whole of it, and the next one completes it",
    async (kind) => {
      using bundle = await NotesBundle.make();
      const seen: number[] = [];
      const preload = pathToFileURL(join(packageRoot, "tst/fakes/die-at-step.mjs")).href;
      for (let which = 1; ; which += 1) {
        const of = pathToFileURL(join(folder, `${kind}-${which}`)).href;
        const args = ["put", bundle.folder, "--store", of, "--json"];
        const exit = await agentenv(args, {
          NODE_OPTIONS: `--import=${preload}`,
          DIE_AT_STEP: `${kind} ${which}`,
        }).exited;
        if (exit.signal === null) {
          expect(exit.code, exit.stderr).toBe(0);
          break;
        }
        seen.push((await records(of)).length);
        // What dies last has only the record left to put.
        if (which < 6) continue;
        const id = await agentenv(args).exited.then(({ stdout }) => JSON.parse(stdout).envs[0].id);
        await using store = await openStore(of);
        await new EnvStore(store).get(id);
      }
      // Three files, the skill's two and its manifest, the boot, the record.
      expect(seen).toEqual([0, 0, 0, 0, 0, 0, 0, kind === "renamed" ? 1 : 0]);
    },
  );

  it.each(["SIGKILL", "SIGINT"] as const)(
    "by %s while its computer is probed leaves no computer and no record",
    async (signal) => {
      using env = envFolder('type = "computer"\ndriver = "reference"\n');
      // Where put makes the copy that it starts the env from.
      const scratch = join(folder, "scratch");
      mkdirSync(scratch);
      await using command = agentenv(["put", env.folder, "--store", url], { TMPDIR: scratch });
      await until(
        () => command.stderr,
        (said) => said.includes("probing"),
        { ms: 60_000, what: "the probe" },
      );
      const pid = command.child.pid ?? 0;
      const started = childrenOf(pid).map((child) => `any-${child}`);
      const alive = () => started.flatMap((name) => processesWith(name));
      expect(alive().length).toBeGreaterThan(1);
      // The runtime folder of somebody who has none lies beside it.
      const copies = () => readdirSync(scratch).filter((name) => name.startsWith("agentenv-put-"));
      expect(copies()).toHaveLength(1);
      command.child.kill(signal);
      const exit = await command.exited;
      if (signal === "SIGINT") expect(exit.code).toBe(130);
      await until(alive, (left) => left.length === 0, { ms: 10_000, what: "the end of the computer" });
      await until(copies, (left) => left.length === 0, { what: "the end of its files" });
      expect(existsSync(join(folder, "store"))).toBe(false);
    },
  );
});
