import { parseDocument } from "yaml";
import { z } from "zod";
import { messageOf } from "../errors.js";
import { canonicalJson } from "./canonical-json.js";

/** In characters. The rules let name, description and compatibility take 1,588; the rest is metadata. */
const MAX_FRONTMATTER = 16_384;

/** Length in code points, as the reference validator counts. */
function text(most: number) {
  return z
    .string()
    .refine((value) => value.trim() !== "", "is empty")
    .refine((value) => [...value].length <= most, `has more than ${most} characters`);
}

/** A skill's frontmatter. Fields that the rules don't name are kept as the author wrote them. Source: Agent Skills. */
export const SkillFrontmatter = z.looseObject({
  name: z
    .string()
    .max(64, "has more than 64 characters")
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "is not made of a–z, 0–9 and single hyphens inside"),
  description: text(1024),
  compatibility: text(500).optional(),
  metadata: z.record(z.string(), z.string("is no string: quote it"), "is no map").optional(),
});
/** What a SKILL.md says of itself before its text. */
export type SkillFrontmatter = z.infer<typeof SkillFrontmatter>;

/** What is wrong with a frontmatter, to be read after the name of its file: "doesn't close its frontmatter". */
export class FrontmatterFault extends Error {}

/** What to do about a FrontmatterFault. */
export const FRONTMATTER_HINT = 'it begins with a line ---, then YAML with "name" and "description", then a line ---';

/** Takes a SKILL.md apart. What is no frontmatter by the rules throws a FrontmatterFault that names the field. */
export function splitFrontmatter(skillText: string): { frontmatter: SkillFrontmatter; body: string } {
  const opening = /^---[ \t]*\r?\n/.exec(skillText);
  if (opening === null) throw new FrontmatterFault("doesn't begin with YAML frontmatter");
  const start = opening[0].length;
  const closing = /^---[ \t]*\r?$/m.exec(skillText.slice(start, start + MAX_FRONTMATTER + 8));
  if (closing === null) {
    const long = skillText.length - start > MAX_FRONTMATTER;
    throw new FrontmatterFault(
      long ? `has more than ${MAX_FRONTMATTER} characters of frontmatter` : "doesn't close its frontmatter",
    );
  }
  const value = parseYaml(skillText.slice(start, start + closing.index));
  const parsed = SkillFrontmatter.safeParse(value);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "it"}: ${message}`);
    throw new FrontmatterFault(`has frontmatter that breaks the rules: ${faults.join("; ")}`);
  }
  return {
    frontmatter: parsed.data,
    body: skillText.slice(start + closing.index + closing[0].length).replace(/^\n/, ""),
  };
}

/** Aliases are refused: a few lines of them grow to gigabytes. So is whatever JSON can't say. */
function parseYaml(yaml: string): unknown {
  try {
    const document = parseDocument(yaml, { schema: "core", uniqueKeys: true, logLevel: "silent" });
    const fault = document.errors[0] ?? document.warnings[0];
    if (fault !== undefined) throw fault;
    const value: unknown = document.toJS({ maxAliasCount: 0 });
    canonicalJson(value);
    return value;
  } catch (cause) {
    throw new FrontmatterFault(`has frontmatter that can't be read: ${messageOf(cause).split("\n", 1)[0]}`, { cause });
  }
}
