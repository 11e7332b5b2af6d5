import type { SkillGetResult } from "../protocol/skill.js";
import { MAX_FILES, SKILL_FILE, type Skill, SkillIntake } from "./skill.js";

/** A skill as skill/v1's `get` answers it: what is UTF-8 as text, the rest in base64. */
export function skillAnswer(skill: Skill): SkillGetResult {
  return {
    name: skill.name,
    description: skill.description,
    content: skill.text,
    files: [...skill.contents()]
      .filter(([{ path }]) => path !== SKILL_FILE)
      .map(([{ path }, bytes]) => {
        const content = bytes.toString("utf8");
        return Buffer.from(content).equals(bytes) ? { path, content } : { path, bytes: bytes.toString("base64") };
      }),
  };
}

/** The skill that an environment answered with, under the same rules as a folder's. Throws SkillRefused. */
export function skillFromAnswer(answer: SkillGetResult, origin: string): Skill {
  const intake = new SkillIntake(origin);
  const take = (path: string, bytes: Buffer) => intake.put(intake.admit(path, bytes.length), bytes);
  if (answer.files.length > MAX_FILES) throw intake.refuse(SKILL_FILE, `comes with more than ${MAX_FILES} files`);
  take(SKILL_FILE, Buffer.from(answer.content));
  for (const file of answer.files) {
    if ("content" in file) take(file.path, Buffer.from(file.content));
    else take(file.path, fromBase64(file.path, file.bytes, intake));
  }
  return intake.finish(answer.name);
}

function fromBase64(path: string, text: string, intake: SkillIntake): Buffer {
  const bytes = Buffer.from(text, "base64");
  // Node skips what is no base64; a file that came so would have other bytes than were meant.
  if (bytes.toString("base64") !== text) throw intake.refuse(path, "has bytes that are not base64");
  return bytes;
}
