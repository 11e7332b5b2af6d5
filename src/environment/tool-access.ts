import type { ToolAccessRequest } from "../protocol/tool.js";

const WILDCARD = "*";
/** How a caller without a role is named in the rules. */
export const NO_ROLE = "default";
/** More roles than this are refused, so that rules can't grow without end. */
const MAX_ROLES = 1_000;
const MAX_RULES_A_ROLE = 10_000;

export interface ToolAccessChange {
  role: string;
  disabled: string[];
  allowed: string[];
}

/**
 * Which role may see and call which tool. A call looks up its role's rules first, then those of `*`; within a role the
 * rule that names the tool, then the role's `*` rule. A tool hidden by default skips the `*` rules and stays hidden until a
 * rule names it. Source: AgentEnv protocol 1.0, disable-tool/v1 and enable-tool/v1.
 */
export class ToolAccess {
  /** role → tool or `*` → disabled. */
  readonly #rules = new Map<string, Map<string, boolean>>();
  readonly #hiddenByDefault: ReadonlySet<string>;
  #version = 0;

  constructor(hiddenByDefault: Iterable<string> = []) {
    this.#hiddenByDefault = new Set(hiddenByDefault);
  }

  /** Grows with each change, so that what was made from the rules can be kept until then. */
  get version(): number {
    return this.#version;
  }

  isDisabled(role: string | undefined, tool: string): boolean {
    const hidden = this.#hiddenByDefault.has(tool);
    for (const name of [role ?? NO_ROLE, WILDCARD]) {
      const rules = this.#rules.get(name);
      const named = rules?.get(tool);
      if (named !== undefined) return named;
      const every = rules?.get(WILDCARD);
      if (every !== undefined && !hidden) return every;
    }
    return hidden;
  }

  /** Whether the role has rules of its own; one that has none sees what every other such role sees. */
  hasRules(role: string | undefined): boolean {
    return this.#rules.has(role ?? NO_ROLE);
  }

  /** Applies one request and answers the role's own rules after it. `undefined`: a bound was reached, nothing changed. */
  change(request: ToolAccessRequest, disabled: boolean): ToolAccessChange | undefined {
    const tools = request.tools === WILDCARD ? [WILDCARD] : request.tools;
    const own = this.#rules.get(request.role);
    if (own === undefined && this.#rules.size >= MAX_ROLES) return undefined;
    if ((own?.size ?? 0) + tools.length > MAX_RULES_A_ROLE) return undefined;
    for (const tool of tools) this.#apply(request.role, tool, disabled);
    this.#version += 1;
    const rules = [...(this.#rules.get(request.role) ?? [])];
    const named = (wanted: boolean) => rules.filter(([, rule]) => rule === wanted).map(([tool]) => tool);
    return { role: request.role, disabled: named(true).sort(), allowed: named(false).sort() };
  }

  #apply(role: string, tool: string, disabled: boolean): void {
    if (role === WILDCARD && tool === WILDCARD) {
      this.#rules.clear();
      this.#rules.set(WILDCARD, new Map([[WILDCARD, disabled]]));
    } else if (role === WILDCARD) {
      for (const rules of this.#rules.values()) rules.set(tool, disabled);
      this.#rulesOf(WILDCARD).set(tool, disabled);
    } else if (tool === WILDCARD) {
      this.#rules.set(role, new Map([[WILDCARD, disabled]]));
    } else {
      this.#rulesOf(role).set(tool, disabled);
    }
  }

  #rulesOf(role: string): Map<string, boolean> {
    let rules = this.#rules.get(role);
    if (rules === undefined) {
      rules = new Map();
      this.#rules.set(role, rules);
    }
    return rules;
  }
}
