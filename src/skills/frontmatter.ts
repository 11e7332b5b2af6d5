import {
  FRONTMATTER_HINT,
  FrontmatterFault,
  type SkillFrontmatter,
  splitFrontmatter,
} from "../protocol/skill-frontmatter.js";
import { SkillRefused } from "./refused.js";

export type Frontmatter = SkillFrontmatter;

/** Takes a SKILL.md apart. What is no frontmatter by the rules is refused, naming the field. */
export function readFrontmatter(skillText: string, origin: string): { frontmatter: Frontmatter; body: string } {
  try {
    return splitFrontmatter(skillText);
  } catch (thrown) {
    if (!(thrown instanceof FrontmatterFault)) throw thrown;
    const { message, cause } = thrown;
    const options = { hint: FRONTMATTER_HINT, ...(cause === undefined ? {} : { cause }) };
    throw new SkillRefused(origin, "SKILL.md", message, options);
  }
}
