import type { ForwardedItem, ForwardedList, ListKind } from "../../environment/forwarded-server.js";
import { elementsOf, membersOf, memberText } from "../../protocol/json-text.js";

/** How many different lists are kept; callers of one server see mostly the same. */
const MAX_LISTS = 64;

/** By what a list's entries are named. */
const KEYS: Record<ListKind, string> = {
  tools: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
  prompts: "name",
  skills: "uri",
};

/** Lists as their server wrote them, read once: the same text is the same object. */
export class ListCache {
  readonly #lists = new Map<string, ForwardedList>();

  /** The list whose pages have these result texts. */
  read(kind: ListKind, pages: readonly string[]): ForwardedList {
    const key = `${kind} ${pages.join("\n")}`;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = readList(kind, pages);
      const [oldest] = this.#lists.keys();
      if (this.#lists.size >= MAX_LISTS && oldest !== undefined) this.#lists.delete(oldest);
      this.#lists.set(key, list);
    }
    return list;
  }
}

/** One page of a list of tools, read alone. */
export function toolPage(page: string): ForwardedList {
  return readList("tools", [page]);
}

function readList(kind: ListKind, pages: readonly string[]): ForwardedList {
  const items = pages.flatMap((page) => {
    const list = memberText(page, kind) ?? "[]";
    return (elementsOf(list) ?? []).flatMap(({ start, end }): ForwardedItem[] => {
      const text = list.slice(start, end);
      const members = membersOf(text);
      // What is no object is nothing that could be asked for.
      if (members === undefined) return [];
      const key = members.get(KEYS[kind]);
      return [{ key: String(key === undefined ? null : JSON.parse(text.slice(key.start, key.end))), text }];
    });
  });
  // What else a paged list says, its first page says.
  const [first = "{}"] = pages;
  const rest = [...(membersOf(first) ?? [])]
    .filter(([name]) => name !== kind && name !== "nextCursor")
    .map(([name, { start, end }]) => `${JSON.stringify(name)}:${first.slice(start, end)}`);
  return { items, rest: rest.join(","), whole: pages.length === 1 ? first : undefined };
}
