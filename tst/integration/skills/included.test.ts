import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { McpClient } from "../../../src/mcp/client.js";
import { packageRoot } from "../../../src/package-root.js";
import type { SkillEntry } from "../../../src/protocol/skill.js";
import { writeSkillFolder } from "../../../src/skills/folder.js";
import { agentenv, envFolder } from "../../harness/computer.js";
import { isRoot } from "../../harness/desktop.js";
import { skillOf, skillText } from "../../harness/skill-folder.js";

/** Root's copy of an env lies beside agent-env; for anybody else the folder is served where it is, and nothing is beside it. */
const AGENT_ENV = isRoot ? "agent-env" : pathToFileURL(join(packageRoot, "dist/src/index.js")).href;
const CLASS = `import { Environment } from "${AGENT_ENV}";
export class Quiet extends Environment {}
`;
const knots = skillOf({ "SKILL.md": skillText("knots"), "how/bowline.md": "Loop.\n" });
const sails = skillOf({ "SKILL.md": skillText("sails"), "jib.bin": new Uint8Array([0xff, 0]) });

let env: ReturnType<typeof envFolder>;
let store: string;
beforeAll(async () => {
  env = envFolder("");
  writeFileSync(join(env.folder, "quiet.js"), CLASS);
  writeSkillFolder(knots, join(env.folder, "skills", "knots"));
  // Nobody but who starts the env can read these: the session user gets what is in them.
  mkdirSync(join(env.folder, "private"), { mode: 0o700 });
  writeSkillFolder(sails, join(env.folder, "private", "sails"));
  store = pathToFileURL(join(env.folder, "private", "store")).href;
  await up([], ["skills", "add", join(env.folder, "private", "sails"), "--store", store]).exited;
});
afterAll(() => env[Symbol.dispose]());

/** Starts the env with these skills included. */
function up(include: readonly string[], args = ["up", env.folder, "--port", "0", "--json"]) {
  const toml = `type = "class"\nmodule = "quiet.js#Quiet"\n[skills]\ninclude = ${JSON.stringify(include)}\n`;
  writeFileSync(join(env.folder, "env.toml"), toml);
  return agentenv(args, { AGENTENV_STORE: store });
}

describe("[skills] include", () => {
  it("serves folders and stored skills beside the env's own, whoever may read where they lie", async () => {
    await using running = up(["skills/knots", sails.digest]);
    const { url } = await running.ready();
    await using client = await McpClient.connect(url);
    const skills = (await client.request("skills/list", {})).skills as SkillEntry[];
    const uris = ["skill://knots/SKILL.md", "skill://sails/SKILL.md"];
    expect(skills.map(({ uri }) => uri)).toEqual(uris);
    const read = async (uri: string) => (await client.request("resources/read", { uri })).contents;
    expect(await read("skill://knots/how/bowline.md")).toMatchObject([{ text: "Loop.\n" }]);
    expect(await read("skill://sails/jib.bin")).toMatchObject([{ blob: "/wA=" }]);
    const digests = skills.map(({ resources }) =>
      resources === "dynamic" ? [] : resources.map(({ digest }) => digest),
    );
    expect(digests).toEqual([knots, sails].map(({ files }) => files.map(({ sha256 }) => `sha256:${sha256}`)));
  });

  it.each([
    ["a folder that there isn't", ["skills/none"], /skills\/none can't be read as a skill/],
    ["a folder that is no skill", ["."], /SKILL\.md is missing/],
    ["a digest that isn't stored", [`sha256:${"0".repeat(64)}`], /sha256:0{64}/],
    ["a digest that is none", ["sha256:12"], /64 lower-case hexadecimal digits/],
    ["one twice", ["skills/knots", "./skills/knots"], /a second skill named knots/],
  ])("refuses %s at the start, with the file, the key and what may be written", async (_what, include, told) => {
    const { code, stderr } = await up(include).exited;
    expect(stderr).toContain(
      `${join(env.folder, "env.toml")}: skills.include[${include.length - 1}]: "${include.at(-1)}"`,
    );
    expect(stderr).toMatch(told);
    expect(stderr).toMatch(/name a skill's folder|include it once/);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(code).toBe(1);
  });

  it("refuses a key that isn't known, and one that isn't a list", async () => {
    for (const [line, told] of [
      ["[skills]\ninclud = []", 'unknown key "skills.includ", did you mean "include"?'],
      ['[skills]\ninclude = "knots"', "skills.include: "],
    ]) {
      writeFileSync(join(env.folder, "env.toml"), `type = "class"\nmodule = "quiet.js#Quiet"\n${line}\n`);
      const { code, stderr } = await agentenv(["up", env.folder, "--port", "0"]).exited;
      expect(stderr).toContain(told);
      expect(code).toBe(1);
    }
  });
});
