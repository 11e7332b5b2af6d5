import type { JsonObject } from "../protocol/tool.js";
import type { ForwardedList } from "./forwarded-server.js";
import { describedText, type ServedTool } from "./served-tool.js";
import { NO_ROLE, type ToolAccess } from "./tool-access.js";
import type { ToolFilter } from "./tool-narrowing.js";

/** What `tools/list` answers, as JSON text that is made once for all callers who see the same. */
export class ToolLists {
  /** By the rights of those who see it. */
  readonly #own = new Map<string, string>();
  /** By the list of a server behind that it was made from. */
  readonly #joined = new WeakMap<ForwardedList, { key: string; text: string }>();
  #version = -1;
  #changes = 0;

  constructor(
    private readonly access: ToolAccess,
    private readonly tools: ReadonlyMap<string, ServedTool>,
    /** The names that servers behind have or had, whether they are served or not. */
    private readonly behind: ReadonlySet<string>,
    /** Whether servedTools() chooses: what it wasn't asked about yet isn't shown. */
    private readonly chooses: boolean,
    /** The descriptions that were changed here, by name. */
    private readonly descriptions: ReadonlyMap<string, string>,
    private readonly extras: () => JsonObject,
    private readonly filter: ToolFilter,
  ) {}

  /** Says that tools or their descriptions have changed. */
  changed(): void {
    this.#changes += 1;
    this.#own.clear();
  }

  /** The list for a role; with the lists of servers behind, as the caller sees them. */
  json(role: string | undefined, behind: readonly ForwardedList[]): string {
    const rights = this.access.hasRules(role) || this.filter.narrows(role) ? (role ?? NO_ROLE) : "";
    return behind.length === 0 ? this.#ownList(role, rights) : this.#joinedList(role, rights, behind);
  }

  #ownList(role: string | undefined, rights: string): string {
    if (this.#version !== this.access.version) {
      this.#own.clear();
      this.#version = this.access.version;
    }
    let list = this.#own.get(rights);
    if (list === undefined) {
      list = joined(this.#texts([...this.tools.values()], role), [this.#extrasText()]);
      this.#own.set(rights, list);
    }
    return list;
  }

  #joinedList(role: string | undefined, rights: string, lists: readonly ForwardedList[]): string {
    const only = lists.length === 1 ? lists[0] : undefined;
    const key = `${this.access.version} ${this.#changes} ${rights}`;
    const kept = only && this.#joined.get(only);
    if (kept?.key === key) return kept.text;
    const items = lists.flatMap((list) => list.items);
    const listed = new Set(items.map((item) => item.key));
    const own = [...this.tools.values()].filter(
      ({ definition: { name } }) => !this.behind.has(name) && !listed.has(name),
    );
    const texts = this.#texts(own, role);
    let asItIs = only?.whole !== undefined && texts.length === 0 && this.#extrasText() === "";
    for (const { key: name, text } of items) {
      const tool = this.tools.get(name);
      const description = this.descriptions.get(name);
      // What was changed here is served; else the caller sees what its server wrote for it.
      const served =
        tool !== undefined && tool.definitionText === undefined
          ? JSON.stringify(tool.definition)
          : description === undefined
            ? text
            : describedText(text, description);
      const hidden = (tool === undefined && (this.chooses || this.behind.has(name))) || !this.#shows(name, role);
      asItIs &&= !hidden && served === text;
      if (!hidden) texts.push(served);
    }
    const text =
      asItIs && only?.whole !== undefined
        ? only.whole
        : joined(texts, [this.#extrasText(), ...lists.map((list) => list.rest)]);
    if (only !== undefined) this.#joined.set(only, { key, text });
    return text;
  }

  #texts(tools: readonly ServedTool[], role: string | undefined): string[] {
    return tools
      .filter((tool) => this.#shows(tool.definition.name, role))
      .map((tool) => tool.definitionText ?? JSON.stringify(tool.definition));
  }

  #shows(name: string, role: string | undefined): boolean {
    return this.filter.serves(name, role) && !this.access.isDisabled(role, name);
  }

  #extrasText(): string {
    return JSON.stringify(this.extras()).slice(1, -1);
  }
}

/** The result of `tools/list`, from its entries and what else it holds, all JSON text. */
function joined(tools: readonly string[], rest: readonly string[]): string {
  return `{${[`"tools":[${tools.join(",")}]`, ...rest].filter((part) => part !== "").join(",")}}`;
}
