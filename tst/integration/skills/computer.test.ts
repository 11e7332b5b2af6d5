import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KNOWN_FAULTS } from "../../../drivers/cua-driver/known-faults.js";
import type { McpClient } from "../../../src/mcp/client.js";
import { packageRoot } from "../../../src/package-root.js";
import type { SkillEntry } from "../../../src/protocol/skill.js";
import { writeFolder } from "../../../src/skills/folder.js";
import { digestOf } from "../../../src/skills/skill.js";
import { agentenv, type Computer, envFolder, startComputer } from "../../harness/computer.js";
import { cuaDriver } from "../../harness/cua-mcp.js";
import { validateSkill } from "../../harness/skills-ref.js";

const ENV = `
type = "computer"
driver = "cua-driver"
[apps]
start = ["thunar"]
[tools]
hide = ["kill_app"]
[tools.roles.grader]
only = ["computer_screenshot", "computer_click"]
[tools.roles.typist]
hide = ["computer_wait", "computer_drag", "browser_*", "hotkey", "click"]
[tools.roles.driven]
hide = ["computer_*"]
`;
const ROLES = [undefined, "grader", "typist", "driven", "locked"];

let env: ReturnType<typeof envFolder>;
let computer: Computer;
beforeAll(async () => {
  env = envFolder(ENV);
  computer = await startComputer(env.folder);
  const locked = { role: "locked", tools: ["computer_key", "press_key", "computer_screenshot"] };
  await fetch(`${computer.url}/tools/disable`, { method: "POST", body: JSON.stringify(locked) });
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});

const entryOf = async (client: McpClient, name: string) => {
  const { skills } = await client.request("skills/list", {});
  return (skills as SkillEntry[]).find(({ frontmatter }) => frontmatter.name === name) as SkillEntry & {
    resources: { uri: string; digest: string; size: number }[];
  };
};

async function read(client: McpClient, uri: string): Promise<string> {
  const { contents } = await client.request("resources/read", { uri });
  return (contents as [{ text: string }])[0].text;
}

/** The files of the skill `computer`, as a role sees it, each held to its digest. */
async function filesFor(role?: string): Promise<{ client: McpClient; files: Map<string, string> }> {
  const client = await computer.connect(role === undefined ? {} : { role });
  const files = new Map<string, string>();
  for (const { uri, digest } of (await entryOf(client, "computer")).resources) {
    const text = await read(client, uri);
    expect(`sha256:${createHash("sha256").update(text).digest("hex")}`).toBe(digest);
    files.set(uri.slice("skill://computer/".length), text);
  }
  return { client, files };
}

/** The driver's own files, as the verified executable wrote them at install. */
function pack(): Map<string, string> {
  const folder = join(cuaDriver(computer), "..", "served", "skill");
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

describe("the skill of a computer whose driver is cua-driver", () => {
  it("leads with the driver's own text, under one frontmatter that is ours, with the driver's other files beside it", async () => {
    const { files } = await filesFor();
    const theirs = pack();
    expect(theirs.size).toBe(9);
    const text = files.get("SKILL.md") ?? "";
    const [, frontmatter, body] = text.split(/^---\n/m);
    expect(frontmatter).toMatch(/^name: computer\ndescription: /);
    const [, , theirBody = ""] = (theirs.get("SKILL.md") ?? "").split(/^---\n/m);
    expect(body?.trimStart().startsWith(theirBody.trim())).toBe(true);
    theirs.delete("SKILL.md");
    for (const [path, content] of theirs) expect(files.get(path), path).toBe(content);
    expect([...files.keys()].sort()).toEqual([...theirs.keys(), "SKILL.md", "references/refusals.md"].sort());
  });

  it("then says what this computer is: its display, its apps, its keys in words, and each answer that is wrong", async () => {
    const { files } = await filesFor();
    const section = (files.get("SKILL.md") ?? "").split("# This computer\n")[1] ?? "";
    expect(section).toContain("Its display has 1280 by 800 pixels.");
    expect(section).toContain("It starts with `thunar`.");
    expect(section).toMatch(/`computer_key` presses any printable ASCII character, Control, .*, F1 to F12\.$/m);
    for (const { wrong, instead } of KNOWN_FAULTS) expect(section).toContain(`- ${wrong} ${instead[0].text}`);
    expect(section).toContain("Frames: what a point means");
  });

  it("stands beside the driver's own skill, which is as the driver serves it", async () => {
    const client = await computer.connect();
    const { skills } = await client.request("skills/list", {});
    expect((skills as SkillEntry[]).map(({ uri }) => uri)).toEqual([
      "skill://computer/SKILL.md",
      "skill://cua-driver/SKILL.md",
    ]);
    expect((await entryOf(client, "cua-driver")).resources).toHaveLength(11);
    expect(await read(client, "skill://cua-driver/SKILL.md")).toBe(pack().get("SKILL.md"));
    const { resources } = await client.request("resources/directory/read", { uri: "skill://cua-driver" });
    expect(resources).toHaveLength(11);
  });

  it.each(ROLES)("names in what is ours no tool that the caller doesn't have: role %s", async (role) => {
    const { client, files } = await filesFor(role);
    const pin = JSON.parse(readFileSync(join(packageRoot, "mcp.json"), "utf8")) as { tools: { name: string }[] };
    const known = new Set(pin.tools.map(({ name }) => name));
    const ours = `${(files.get("SKILL.md") ?? "").split("# This computer\n")[1]}\n${files.get("references/refusals.md")}`;
    const named = [...ours.matchAll(/`([a-z_]+)`/g)]
      .map(([, name]) => name as string)
      .filter((name) => known.has(name) || /^computer_[a-z_]*[a-z]$/.test(name));
    const has = (await client.tools()).map(({ name }) => name);
    expect(has.length).toBeGreaterThan(1);
    expect([...new Set(named)].filter((name) => !has.includes(name))).toEqual([]);
    // What they do have is named, each tool.
    expect(has.filter((name) => !named.includes(name))).toEqual([]);
  });

  it("has one digest: over MCP, as `skills add` prints it, and as `skills pack` and a stored bundle have it", async () => {
    const client = await computer.connect();
    const { resources } = await entryOf(client, "computer");
    const listed = resources.map(({ uri, digest, size }) => ({
      path: decodeURIComponent(uri.slice("skill://computer/".length)),
      size,
      sha256: digest.slice("sha256:".length),
    }));
    const store = ["--store", pathToFileURL(join(env.folder, "store")).href];
    const added = await agentenv(["skills", "add", computer.url, ...store]).exited;
    expect(added.stdout.trim(), added.stderr).toBe(digestOf(listed));
    const out = ["--out", join(env.folder, "computer.tar"), "--json"];
    const packed = async (source: string) =>
      JSON.parse((await agentenv(["skills", "pack", source, ...store, ...out]).exited).stdout) as { digest: string };
    const fromUrl = await packed(computer.url);
    expect(fromUrl).toMatchObject({ digest: digestOf(listed) });
    expect(await packed(added.stdout.trim())).toEqual(fromUrl);
  });

  it.each(ROLES)(
    "keeps the rules of Agent Skills as the reference validator reads them, for each role: %s",
    async (role) => {
      const { files } = await filesFor(role);
      const folder = join(env.folder, `as-${role}`, "computer");
      writeFolder(
        [...files].map(([path, text]) => [path, Buffer.from(text)] as const),
        folder,
        "skill",
      );
      expect(validateSkill(folder)).toBe(`Valid skill: ${folder}\n`);
      expect(files.get("SKILL.md")?.match(/^(name|description): /gm)).toEqual(["name: ", "description: "]);
    },
  );
});
