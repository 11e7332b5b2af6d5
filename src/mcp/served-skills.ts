import type { Application } from "../environment/application.js";
import type { ForwardedList } from "../environment/forwarded-server.js";
import { SetupError } from "../errors.js";
import type { RawJson } from "../protocol/raw-json.js";
import { skillFromAnswer } from "../skills/answer.js";
import type { Skill } from "../skills/skill.js";
import { asBytes } from "./kept-json.js";
import { rootOf, SkillCatalog } from "./skill-catalog.js";

/** About how long a page of `skills/list` is, in characters; an entry is never split. */
const PAGE = 1 << 20;

/** The skills that an application serves over MCP: its environment's own as each role sees it, and those that it includes. */
export class ServedSkills {
  readonly #catalogs = new WeakMap<object, SkillCatalog>();
  /** By what the entries are of: the pages that `skills/list` answers. */
  readonly #pages = new WeakMap<SkillCatalog, { lists: readonly ForwardedList[]; pages: readonly RawJson[] }>();
  readonly #included: SkillCatalog;

  /** Throws SkillRefused for a skill that breaks the rules, SetupError for two of one name. */
  constructor(
    private readonly application: Application,
    private readonly included: readonly Skill[] = [],
  ) {
    this.#included = new SkillCatalog(included);
    const own = application.skill(undefined);
    const names = own === undefined ? [] : [own.name];
    for (const { name } of included) {
      if (names.includes(name)) throw twice(name, "the environment", "[skills] include");
      names.push(name);
    }
    const { resources, forwarding } = application;
    const others = [
      ...resources.fixed.map(({ definition }) => ({ key: definition.uri, server: "a resource of the environment" })),
      ...forwarding.entries("resources").map(({ key, server }) => ({ key, server: `the server ${server}` })),
    ];
    for (const name of names) {
      const other = others.find(({ key }) => key.startsWith(`${rootOf({ name })}/`));
      if (other !== undefined) throw twice(name, "the environment", other.server);
    }
    this.of(undefined);
  }

  /** Whether there is none of ours; what servers behind have is their own. */
  get empty(): boolean {
    return this.of(undefined).empty;
  }

  /** The skills as a role sees them. */
  of(role: string | undefined): SkillCatalog {
    const own = this.application.skill(role);
    if (own === undefined) return this.#included;
    let catalog = this.#catalogs.get(own);
    if (catalog === undefined) {
      catalog = new SkillCatalog([skillFromAnswer(own, `the skill of ${this.application.name}`), ...this.included]);
      this.#catalogs.set(own, catalog);
    }
    return catalog;
  }

  /** The pages of `skills/list`: ours first, then those of the servers behind, kept until another list comes. */
  pages(catalog: SkillCatalog, lists: readonly ForwardedList[]): readonly RawJson[] {
    const known = this.#pages.get(catalog);
    if (
      known !== undefined &&
      known.lists.length === lists.length &&
      lists.every((list, at) => list === known.lists[at])
    )
      return known.pages;
    const entries = [...catalog.entries, ...lists.flatMap(({ items }) => items.map(({ text }) => text))];
    const rest = lists.map((list) => list.rest).filter((text) => text !== "");
    const pages = pagesOf(entries).map((page, at, all) => {
      const next = at + 1 < all.length ? [`"nextCursor":"${at + 1}"`] : [];
      return asBytes(`{${[`"skills":[${page.join(",")}]`, ...rest, ...next].join(",")}}`);
    });
    this.#pages.set(catalog, { lists, pages });
    return pages;
  }
}

/** Entries page by page; there is always a first one. */
function pagesOf(entries: readonly string[]): string[][] {
  const pages: string[][] = [[]];
  let length = 0;
  for (const entry of entries) {
    if (length > 0 && length + entry.length > PAGE) {
      pages.push([]);
      length = 0;
    }
    pages.at(-1)?.push(entry);
    length += entry.length;
  }
  return pages;
}

function twice(name: string, one: string, other: string): SetupError {
  return new SetupError(`the skill "${name}" is served twice: by ${one} and by ${other}`, {
    hint: "give one of them another name, or leave it out",
  });
}
