import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Shop } from "../../../bundles/shop/shop.js";
import { toSkill } from "../../../src/environment/skill.js";
import { packageRoot } from "../../../src/package-root.js";
import { skillFromAnswer } from "../../../src/skills/answer.js";
import { readSkillFolder, writeSkillFolder } from "../../../src/skills/folder.js";
import { validateSkill } from "../../harness/skills-ref.js";

const shipped = readdirSync(join(packageRoot, "skills"));

describe("each skill that we ship", () => {
  it("is looked at", () => {
    expect(shipped).toContain("computer");
  });

  it.each(shipped)("keeps the rules of Agent Skills as the reference validator reads them: %s", (name) => {
    const folder = join(packageRoot, "skills", name);
    expect(validateSkill(folder)).toBe(`Valid skill: ${folder}\n`);
  });

  it("is no other than the shop's, which its class holds: that one keeps the rules too", () => {
    const parent = mkdtempSync(join(tmpdir(), "shipped-"));
    try {
      const folder = join(parent, "shopping");
      writeSkillFolder(skillFromAnswer(toSkill(new Shop().shopping()), "the shop"), folder);
      expect(validateSkill(folder)).toBe(`Valid skill: ${folder}\n`);
    } finally {
      rmSync(parent, { recursive: true, force: true });
    }
  });

  it.each(shipped)("is read by ours: %s", (name) => {
    expect(readSkillFolder(join(packageRoot, "skills", name)).name).toBe(name);
  });
});
