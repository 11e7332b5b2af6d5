import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Tokens } from "../../../src/http/tokens.js";
import { packageRoot } from "../../../src/package-root.js";
import { readSkillFolder } from "../../../src/skills/folder.js";
import { PostOffice } from "../../fakes/post-office.js";
import { serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";
import { agentenv } from "../../harness/computer.js";
import { SkillFolder, skillOf, skillText } from "../../harness/skill-folder.js";

let data: string;
beforeAll(() => {
  data = mkdtempSync(join(tmpdir(), "data-"));
});
afterAll(() => rmSync(data, { recursive: true, force: true }));

const skills = (args: string[], environment: NodeJS.ProcessEnv = {}) =>
  agentenv(["skills", ...args], { AGENTENV_DATA: data, ...environment }).exited;

describe("agentenv skills", () => {
  it("keeps skills below the data folder when no store is named", async () => {
    using made = new SkillFolder("notes", { "SKILL.md": skillText("notes") });
    const added = await skills(["add", made.folder, "--json"]);
    const { digest } = readSkillFolder(made.folder);
    const store = pathToFileURL(join(data, "store")).href;
    const bytes = skillText("notes").length;
    expect(JSON.parse(added.stdout)).toEqual({ digest, name: "notes", files: 1, bytes, added: true, store });
    expect(JSON.parse((await skills(["list", "--json"])).stdout)).toEqual([
      { digest, name: "notes", files: 1, bytes, added: expect.any(String) },
    ]);
    expect((await skills(["list"])).stdout).toMatch(/ {2}1 file {2}/);
    expect(JSON.parse((await skills(["verify", digest, "--json"])).stdout)).toEqual({ digest, faults: [] });
    const elsewhere = pathToFileURL(join(data, "elsewhere")).href;
    expect((await skills(["list", "--json"], { AGENTENV_STORE: elsewhere })).stdout).toBe("[]\n");
  });

  it("refuses a hostile folder and a hostile tar with the path and the reason, and writes nothing", async () => {
    using made = new SkillFolder("evil", { "SKILL.md": skillText("evil") });
    symlinkSync("/etc/shadow", join(made.folder, "shadow"));
    const tar = join(made.parent, "evil.tar");
    writeFileSync(tar, execFileSync("tar", ["-cf", "-", "-C", made.parent, "evil"]));
    for (const [source, told] of [
      [made.folder, /shadow is a symbolic link that leaves the skill's folder/],
      [tar, /evil\/shadow is a symlink/],
    ] as const) {
      const folder = join(data, "untouched");
      const exit = await skills(["add", source, "--store", pathToFileURL(folder).href]);
      expect(exit.code).toBe(1);
      expect(exit.stdout).toBe("");
      expect(exit.stderr).toMatch(told);
      expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
      expect(existsSync(folder)).toBe(false);
    }
  });

  it("takes the skill of a running environment, with the digest of the same files", async () => {
    await using serving = await serve(new PostOffice());
    const added = await skills(["add", serving.url, "--json"]);
    const content = "---\nname: posting\ndescription: How to post.\n---\nUse a stamp.";
    const expected = skillOf({ "SKILL.md": content, "a.bin": new Uint8Array([7]) });
    expect(JSON.parse(added.stdout), added.stderr).toMatchObject({ digest: expected.digest, name: "posting" });
  });

  it("asks an environment that wants a token with the one that a file holds, and says what is missing without", async () => {
    const token = "skills-token-0123456789";
    await using serving = await serve(new PostOffice(), { tokens: Tokens.parse(`framework:${token}`, "tokens") });
    const refused = await skills(["add", serving.url]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/asks for a bearer token\n.*framework by --token-file/);
    expect((await skills(["add", serving.url], { AGENTENV_TOKEN: "another-0123456789" })).stderr).toMatch(/token/);
    const file = join(data, "token");
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const added = await skills(["add", serving.url, "--token-file", file, "--json"]);
    expect(JSON.parse(added.stdout), added.stderr).toMatchObject({ name: "posting" });
    const packed = await skills(["pack", serving.url, "--out", join(data, "posting.tar")], { AGENTENV_TOKEN: token });
    expect(packed.code, packed.stderr).toBe(0);
  });

  it("says of an environment that it has no skill, and of an address that nothing answers there", async () => {
    await using serving = await serve(new Shop());
    expect(await skills(["add", serving.url])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has no skill/),
    });
    const nobody = await skills(["add", "http://127.0.0.1:1"]);
    expect(nobody).toMatchObject({ code: 1, stderr: expect.stringMatching(/ECONNREFUSED[\s\S]*is an environment/) });
  });

  it("leaves a folder alone that holds something already", async () => {
    using made = new SkillFolder("notes", { "SKILL.md": skillText("notes"), "mine.txt": "mine" });
    const digest = (await skills(["add", made.folder])).stdout.trim();
    const refused = await skills(["get", digest, "--out", made.folder]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/isn't there yet, or an empty one/) });
    expect(readdirSync(made.folder).sort()).toEqual(["SKILL.md", "mine.txt"]);
    expect(readdirSync(made.parent)).toEqual(["notes"]);
  });

  it("writes a tar to standard output that tar reads", async () => {
    using made = new SkillFolder("notes", { "SKILL.md": skillText("notes") });
    const main = join(packageRoot, "dist/src/cli/main.js");
    const tar = execFileSync(process.execPath, [main, "skills", "pack", made.folder, "--out", "-"]);
    expect(execFileSync("tar", ["-tf", "-"], { input: tar }).toString()).toBe("notes/SKILL.md\n");
  });

  it("packs the same bytes, with the same digest, from another file system", async () => {
    using made = new SkillFolder("notes", { "SKILL.md": skillText("notes"), "caf\u00e9/run.sh": "#!/bin/sh\n" });
    const other = mkdtempSync("/dev/shm/skills-");
    expect(statSync(other).dev).not.toBe(statSync(made.folder).dev);
    try {
      cpSync(made.folder, join(other, "notes"), { recursive: true });
      const packed = async (folder: string) => {
        const { stdout } = await skills(["pack", folder, "--out", join(data, "out.tar"), "--json"]);
        const { digest, tar } = JSON.parse(stdout);
        return { digest, tar };
      };
      expect(await packed(join(other, "notes"))).toEqual(await packed(made.folder));
    } finally {
      rmSync(other, { recursive: true });
    }
  });

  it("says what is wrong with a store's URL and what to write instead", async () => {
    const exit = await skills(["list", "--store", "/srv/store"]);
    expect(exit).toMatchObject({ code: 1, stderr: expect.stringContaining("file:///srv/store") });
  });

  it("never loads AWS's library for a store that is a folder", async () => {
    const preload = pathToFileURL(join(packageRoot, "tst/fakes/without-aws.mjs")).href;
    const NODE_OPTIONS = `--import=${preload}`;
    expect((await skills(["list", "--json"], { NODE_OPTIONS })).code).toBe(0);
    const s3 = await skills(["list", "--store", "s3://bucket/x"], { NODE_OPTIONS });
    expect(s3.stderr).toContain("AWS's library was wanted");
  });
});
