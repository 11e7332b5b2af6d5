import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Skill, SkillIntake } from "../../src/skills/skill.js";

/** A SKILL.md by the rules, with more lines of frontmatter where they are given. */
export function skillText(name: string, frontmatter = "", body = "# Do it\n"): string {
  return `---\nname: ${name}\ndescription: What a test needs.\n${frontmatter}---\n\n${body}`;
}

/** A folder that goes with the test, and within it one named like the skill, holding these files. */
export class SkillFolder implements Disposable {
  readonly parent: string;
  readonly folder: string;

  constructor(name: string, files: Readonly<Record<string, string | Uint8Array>>) {
    this.parent = mkdtempSync(join(tmpdir(), "skill-"));
    this.folder = join(this.parent, name);
    mkdirSync(this.folder);
    for (const [path, content] of Object.entries(files)) this.write(path, content);
  }

  write(path: string, content: string | Uint8Array): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  [Symbol.dispose](): void {
    rmSync(this.parent, { recursive: true, force: true });
  }
}

/** A skill made of these files. */
export function skillOf(files: Readonly<Record<string, string | Uint8Array>>): Skill {
  const intake = new SkillIntake("a test");
  for (const [path, content] of Object.entries(files)) {
    const bytes = Buffer.from(content);
    intake.put(intake.admit(path, bytes.length), bytes);
  }
  return intake.finish();
}

/** A skill of so many files beside SKILL.md, each of so many bytes and unlike the others. */
export function largeSkill(name: string, files: number, bytesEach: number, seed = "x"): Skill {
  const contents: Record<string, string | Uint8Array> = { "SKILL.md": skillText(name) };
  for (let index = 0; index < files; index += 1) {
    contents[`d${index % 16}/f${index}.bin`] = Buffer.alloc(bytesEach, `${seed} ${index} `);
  }
  return skillOf(contents);
}
