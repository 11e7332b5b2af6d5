import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { readSkillFolder } from "../../../src/skills/folder.js";
import { pythonTool } from "../../harness/python-tool.js";

const shipped = readdirSync(join(packageRoot, "skills"));

describe("each skill that we ship", () => {
  it("is looked at", () => {
    expect(shipped).toContain("computer");
  });

  it.each(shipped)("keeps the rules of Agent Skills as the reference validator reads them: %s", (name) => {
    const python = join(pythonTool("skills-ref", "0.1.1"), "bin", "python");
    const folder = join(packageRoot, "skills", name);
    const run = "from skills_ref.cli import main; main()";
    expect(execFileSync(python, ["-c", run, "validate", folder]).toString()).toBe(`Valid skill: ${folder}\n`);
  });

  it.each(shipped)("is read by ours: %s", (name) => {
    expect(readSkillFolder(join(packageRoot, "skills", name)).name).toBe(name);
  });
});
