import { z } from "zod";
import { closest } from "../closest.js";
import { SetupError } from "../errors.js";
import { NO_ROLE } from "./tool-access.js";

const Name = z
  .string()
  .regex(/^[^*]+\*?$/, 'is a tool\'s name, or the beginning of names and "*", such as "browser_*"');

const Narrowing = z.strictObject({
  /** Nothing but these is served. */
  only: z.array(Name).optional(),
  /** These aren't. */
  hide: z.array(Name).optional(),
});
type Narrowing = z.infer<typeof Narrowing>;

/** `[tools]` of env.toml: which of its tools an env serves, to all and to single roles. A role never sees more than all do. */
export const ToolNarrowing = Narrowing.extend({ roles: z.record(z.string(), Narrowing).optional() });
export type ToolNarrowing = z.infer<typeof ToolNarrowing>;

/** Which tools are served to whom. What isn't is in no list, and a call of it is one of a tool that there isn't. */
export class ToolFilter {
  readonly #roles: ReadonlyMap<string, Narrowing>;

  constructor(private readonly narrowing: ToolNarrowing = {}) {
    this.#roles = new Map(Object.entries(narrowing.roles ?? {}));
  }

  /** Refuses a name that none of the env's tools has with a SetupError that names the closest one. */
  check(tools: readonly string[]): void {
    const { roles: _, ...all } = this.narrowing;
    checkNames("tools", all, tools);
    for (const [role, narrowing] of this.#roles) checkNames(`tools.roles.${role}`, narrowing, tools);
  }

  /** Whether the tool is served to anybody. */
  servesAll(tool: string): boolean {
    return leaves(this.narrowing, tool);
  }

  serves(tool: string, role: string | undefined): boolean {
    const own = this.#roles.get(role ?? NO_ROLE);
    return this.servesAll(tool) && (own === undefined || leaves(own, tool));
  }

  /** Whether the role sees something else than a role without a table does. */
  narrows(role: string | undefined): boolean {
    return this.#roles.has(role ?? NO_ROLE);
  }
}

function leaves({ only, hide }: Narrowing, tool: string): boolean {
  return (only === undefined || only.some(matching(tool))) && !(hide?.some(matching(tool)) ?? false);
}

function matching(tool: string): (name: string) => boolean {
  return (name) => (name.endsWith("*") ? tool.startsWith(name.slice(0, -1)) : tool === name);
}

function checkNames(table: string, narrowing: Narrowing, tools: readonly string[]): void {
  for (const key of ["only", "hide"] as const) {
    for (const name of narrowing[key] ?? []) {
      const isPrefix = name.endsWith("*");
      if (tools.some((tool) => matching(tool)(name))) continue;
      const candidates = isPrefix ? [...new Set(tools.map((tool) => `${tool.split("_", 1)[0]}_*`))] : tools;
      const near = closest(name, candidates);
      throw new SetupError(
        `env.toml: ${table}.${key}: no tool ${isPrefix ? "begins with" : "is called"} "${name.replace(/\*$/, "")}"`,
        { hint: near === undefined ? "`agentenv tools URL` lists the tools of an env" : `did you mean "${near}"?` },
      );
    }
  }
}
