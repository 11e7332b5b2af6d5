import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { skillsCommand } from "../../../src/cli/skills.js";
import { SkillRefused } from "../../../src/skills/refused.js";
import { isRoot } from "../../harness/desktop.js";
import { HOSTILE_FOLDERS, HOSTILE_FRONTMATTER, HOSTILE_NAME, HOSTILE_TARS } from "../../harness/hostile-skills.js";
import { SkillFolder, skillText } from "../../harness/skill-folder.js";

/** Where anything could be written: data folder, temporary files, a store, what a person names. */
let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "hostile-"));
  mkdirSync(join(scratch, "tmp"));
  vi.stubEnv("AGENTENV_DATA", join(scratch, "data"));
  vi.stubEnv("AGENTENV_STORE", undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(scratch, { recursive: true, force: true });
});

/** Every name below a folder, with its kind, size and time; no link is followed. */
function tree(folder: string): string[] {
  const said = execFileSync("find", [".", "-mindepth", "1", "-printf", "%P %y %m %s %T@\\n"], { cwd: folder });
  return said.toString("latin1").trimEnd().split("\n").sort();
}

/** What the command that a person types does with a source, in each way that could write something. */
async function expectRefused(source: string, beside: string, path: string, reason: RegExp): Promise<void> {
  const before = tree(beside);
  vi.stubEnv("TMPDIR", join(scratch, "tmp"));
  for (const args of [
    ["add", source],
    ["add", source, "--store", pathToFileURL(join(scratch, "store")).href],
    ["pack", source, "--out", join(scratch, "out.tar")],
  ]) {
    const thrown: unknown = await skillsCommand.parseAsync(args, { from: "user" }).catch((refusal: unknown) => refusal);
    expect(thrown).toBeInstanceOf(SkillRefused);
    expect(thrown).toMatchObject({ path, reason: expect.stringMatching(reason) });
  }
  expect(tree(scratch).map((line) => line.split(" ", 1)[0])).toEqual(["tmp"]);
  expect(tree(beside)).toEqual(before);
}

describe("agentenv skills refuses, with its path and the reason, and writes nothing anywhere:", () => {
  it("at least 40 hostile skills", () => {
    expect(HOSTILE_FOLDERS.length + HOSTILE_FRONTMATTER.length + HOSTILE_TARS.length).toBeGreaterThanOrEqual(40);
  });

  it.each(HOSTILE_FOLDERS)("a folder with $what", async ({ make, path, reason }) => {
    using skill = new SkillFolder(HOSTILE_NAME, { "SKILL.md": skillText(HOSTILE_NAME) });
    await make(skill);
    await expectRefused(skill.folder, skill.parent, path, reason);
  });

  it.runIf(isRoot)(`a folder with a device${isRoot ? "" : " (skipped: only root can make one)"}`, async () => {
    using skill = new SkillFolder(HOSTILE_NAME, { "SKILL.md": skillText(HOSTILE_NAME) });
    execFileSync("mknod", [join(skill.folder, "zero"), "c", "1", "5"]);
    await expectRefused(skill.folder, skill.parent, "zero", /is a device/);
  });

  it.each(HOSTILE_FRONTMATTER)("frontmatter with $what", async ({ text, reason }) => {
    using skill = new SkillFolder(HOSTILE_NAME, { "SKILL.md": text });
    await expectRefused(skill.folder, skill.parent, "SKILL.md", reason);
  });

  it.each(HOSTILE_TARS)("a tar with $what", async ({ tar, path, reason }) => {
    using beside = new SkillFolder(HOSTILE_NAME, {});
    const file = join(beside.parent, "evil.tar");
    writeFileSync(file, await tar());
    await expectRefused(file, beside.parent, path, reason);
    expect(existsSync("/etc/cron.d/evil")).toBe(false);
  });
});
