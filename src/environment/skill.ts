import { z } from "zod";
import { SetupError } from "../errors.js";
import { SKILL_URN, type SkillGetResult } from "../protocol/skill.js";
import { extensionMethod, type ServedExtension } from "./extension.js";

/** What an `@agentSkill` method returns. */
export type SkillAnswer = readonly [
  name: string,
  skillMd: string,
  files?: Readonly<Record<string, string | Uint8Array>>,
];

/** Checks what a skill's method returned. Throws a SetupError for a skill without a name or a description. */
export function toSkill([name, content, files = {}]: SkillAnswer): SkillGetResult {
  const frontmatter = /^---\r?\n([\s\S]*?)\r?\n---/.exec(content)?.[1] ?? "";
  const description = /^description:\s*(.+?)\s*$/m.exec(frontmatter)?.[1]?.replace(/^(["'])(.*)\1$/, "$2");
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || name.length > 64 || description === undefined) {
    throw new SetupError(`the skill ${JSON.stringify(name)} can't be served`, {
      hint: "a skill's name is a-z, 0-9 and single hyphens, and the frontmatter of its SKILL.md has a description",
    });
  }
  return {
    name,
    description,
    content,
    files: Object.entries(files).map(([path, file]) =>
      typeof file === "string" ? { path, content: file } : { path, bytes: Buffer.from(file).toString("base64") },
    ),
  };
}

/** `skill/v1`: the skill and its files, as the framework reads them. */
export function skillExtension(skill: SkillGetResult): ServedExtension {
  return {
    uri: SKILL_URN,
    description: "The environment's skill: how an agent uses it well.",
    methods: [
      extensionMethod({ name: "get", op: "get", method: "GET", request: z.strictObject({}), handle: () => skill }),
    ],
  };
}
