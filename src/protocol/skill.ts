import { z } from "zod";

/** skill/v1: an environment's skill, with every file of it. Its one operation is `get`. */
export const SKILL_URN = "urn:agentenv:skill/v1";

/** A file beside SKILL.md: text as `content`, anything else as `bytes` in base64. */
export const SkillGetFile = z.union([
  z.object({ path: z.string(), content: z.string() }),
  z.object({ path: z.string(), bytes: z.string() }),
]);

/** What `get` answers. `content` is SKILL.md as it is, its frontmatter included; `files` are the others. */
export const SkillGetResult = z.object({
  name: z.string(),
  description: z.string(),
  content: z.string(),
  files: z.array(SkillGetFile),
});
/** What `get` answers: a skill with all of its files. */
export type SkillGetResult = z.infer<typeof SkillGetResult>;
