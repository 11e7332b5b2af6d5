import { describe, expect, it } from "vitest";
import { skillFromAnswer } from "../../../src/skills/answer.js";
import { readSkillFolder } from "../../../src/skills/folder.js";
import { SkillRefused } from "../../../src/skills/refused.js";
import { unpackSkill } from "../../../src/skills/tar.js";
import { HOSTILE_FOLDERS, HOSTILE_FRONTMATTER, HOSTILE_NAME, HOSTILE_TARS } from "../../harness/hostile-skills.js";
import { SkillFolder, skillText } from "../../harness/skill-folder.js";

describe("a hostile skill is refused with its path and the reason", () => {
  it.each(HOSTILE_FOLDERS)("as a folder: $what", async ({ make, path, reason }) => {
    using skill = new SkillFolder(HOSTILE_NAME, { "SKILL.md": skillText(HOSTILE_NAME) });
    await make(skill);
    expectRefusal(() => readSkillFolder(skill.folder), path, reason);
  });

  it.each(HOSTILE_FRONTMATTER)("as frontmatter: $what", ({ text, reason }) => {
    using skill = new SkillFolder(HOSTILE_NAME, { "SKILL.md": text });
    expectRefusal(() => readSkillFolder(skill.folder), "SKILL.md", reason);
  });

  it.each(HOSTILE_TARS)("as a tar: $what", async ({ tar, path, reason }) => {
    const bytes = await tar();
    await expectRefusalOf(unpackSkill(bytes, "evil.tar"), path, reason);
  });

  it("as an answer of an environment, whose paths and base64 are looked at the same", () => {
    const answer = { name: HOSTILE_NAME, description: "x", content: skillText(HOSTILE_NAME) };
    const evil = { ...answer, files: [{ path: "../../evil", content: "" }] };
    expectRefusal(() => skillFromAnswer(evil, "http://evil"), "../../evil", /leaves its folder/);
    const broken = { ...answer, files: [{ path: "a.bin", bytes: "AA=A*" }] };
    expectRefusal(() => skillFromAnswer(broken, "http://evil"), "a.bin", /not base64/);
  });

  it("in a message that a terminal shows harmlessly", () => {
    const { message } = new SkillRefused("x", `\u001b[2Jclear\u202e${"n".repeat(10_000)}`, "is a test");
    expect(message.length).toBeLessThan(300);
    expect(message).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });
});

function expectRefusal(work: () => unknown, path: string, reason: RegExp): void {
  let thrown: unknown;
  try {
    work();
  } catch (refusal) {
    thrown = refusal;
  }
  expectRefused(thrown, path, reason);
}

async function expectRefusalOf(work: Promise<unknown>, path: string, reason: RegExp): Promise<void> {
  expectRefused(
    await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    ),
    path,
    reason,
  );
}

function expectRefused(thrown: unknown, path: string, reason: RegExp): void {
  expect(thrown).toBeInstanceOf(SkillRefused);
  const refused = thrown as SkillRefused;
  expect(refused.reason).toMatch(reason);
  expect(refused.path).toBe(path);
}
