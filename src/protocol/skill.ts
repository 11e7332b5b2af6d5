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

/** The identifier of MCP's Skills extension, a key of `capabilities.extensions`. Source: SEP-2640, Final. */
export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";

/** One skill of `skills/list`. `resources` are all of its files with the sha256 and the size of their bytes. Source: SEP-2640. */
export const SkillEntry = z.looseObject({
  /** Of its SKILL.md. */
  uri: z.string(),
  frontmatter: z.looseObject({ name: z.string() }),
  resources: z.union([
    z.array(z.looseObject({ uri: z.string(), digest: z.string(), size: z.int().min(0) })),
    z.literal("dynamic"),
  ]),
});
export type SkillEntry = z.infer<typeof SkillEntry>;

/** What a folder is as a resource. Source: SEP-2640, `resources/directory/read`. */
export const DIRECTORY_TYPE = "inode/directory";
