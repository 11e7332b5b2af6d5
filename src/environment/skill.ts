import { z } from "zod";
import { SetupError } from "../errors.js";
import { SKILL_URN, type SkillGetResult } from "../protocol/skill.js";
import { FRONTMATTER_HINT, FrontmatterFault, splitFrontmatter } from "../protocol/skill-frontmatter.js";
import { extensionMethod, type ServedExtension } from "./extension.js";
import { NO_ROLE, type ToolAccess } from "./tool-access.js";
import type { ToolFilter } from "./tool-narrowing.js";

/** What an `@agentSkill` method returns. */
export type SkillAnswer = readonly [
  name: string,
  skillMd: string,
  files?: Readonly<Record<string, string | Uint8Array>>,
];

/** Checks what a skill's method returned. Throws a SetupError for a SKILL.md that is none, or is of another name. */
export function toSkill([name, content, files = {}]: SkillAnswer): SkillGetResult {
  return {
    name,
    description: describedAs(name, content),
    content,
    files: Object.entries(files).map(([path, file]) =>
      typeof file === "string" ? { path, content: file } : { path, bytes: Buffer.from(file).toString("base64") },
    ),
  };
}

function describedAs(name: string, content: string): string {
  const refuse = (why: string, hint: string, cause?: unknown) =>
    new SetupError(`the skill ${JSON.stringify(name)} can't be served: its SKILL.md ${why}`, { hint, cause });
  try {
    const { frontmatter } = splitFrontmatter(content);
    if (frontmatter.name === name) return frontmatter.description;
    throw refuse(`names it ${JSON.stringify(frontmatter.name)}`, "the two names are the same");
  } catch (thrown) {
    if (!(thrown instanceof FrontmatterFault)) throw thrown;
    throw refuse(thrown.message, FRONTMATTER_HINT, thrown);
  }
}

/** `skill/v1`: the skill and its files, as the framework reads them; of whoever sends a role, as that role sees them. */
export function skillExtension(skillOf: (role: string | undefined) => SkillGetResult | undefined): ServedExtension {
  return {
    uri: SKILL_URN,
    description: "The environment's skill: how an agent uses it well.",
    methods: [
      extensionMethod({
        name: "get",
        op: "get",
        method: "GET",
        request: z.strictObject({}),
        handle: (_params, { role }) => skillOf(role),
      }),
    ],
  };
}

/** Roles may have rules of their own, each of another kind; of more views than this the oldest is made again. */
const MAX_VIEWS = 32;

/** An environment's skill as callers see it: one object for all who may call the same tools. */
export class SkillViews {
  /** By role, or "" for all roles without rules. */
  readonly #byRole = new Map<string, SkillGetResult>();
  /** By the tools that are kept from whoever sees it. */
  readonly #made = new Map<string, SkillGetResult>();
  #version = -1;

  constructor(
    private readonly whole: SkillGetResult,
    private readonly access: ToolAccess,
    private readonly filter: ToolFilter,
    /** The names of the tools that are served to anybody. */
    private readonly tools: () => string[],
    private readonly make: (skill: SkillGetResult, allows: (tool: string) => boolean) => SkillGetResult,
  ) {}

  /** Says that other tools are served. */
  changed(): void {
    this.#byRole.clear();
  }

  of(role: string | undefined): SkillGetResult {
    if (this.#version !== this.access.version) {
      this.#byRole.clear();
      this.#version = this.access.version;
    }
    const rights = this.access.hasRules(role) || this.filter.narrows(role) ? (role ?? NO_ROLE) : "";
    let view = this.#byRole.get(rights);
    if (view === undefined) {
      view = this.#view(role);
      this.#byRole.set(rights, view);
    }
    return view;
  }

  #view(role: string | undefined): SkillGetResult {
    const allowed = this.tools().filter(
      (tool) => this.filter.serves(tool, role) && !this.access.isDisabled(role, tool),
    );
    const key = JSON.stringify(allowed);
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const names = new Set(allowed);
    const made = this.make(this.whole, (tool) => names.has(tool));
    const [oldest] = this.#made.keys();
    if (this.#made.size >= MAX_VIEWS && oldest !== undefined) this.#made.delete(oldest);
    this.#made.set(key, made);
    return made;
  }
}
