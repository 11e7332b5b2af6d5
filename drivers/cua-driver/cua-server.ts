import type { Caller } from "../../src/environment/caller.js";
import type {
  ForwardedCall,
  ForwardedCatalog,
  ForwardedList,
  ForwardedServer,
  ListKind,
} from "../../src/environment/forwarded-server.js";
import { ListCache } from "../../src/mcp/forward/list-cache.js";
import { elementsOf, membersOf, memberText } from "../../src/protocol/json-text.js";
import { RawError, RawJson } from "../../src/protocol/raw-json.js";
import type { ToolForwarding } from "./forwarding.js";
import { type RefusalName, UNKNOWN_METHOD } from "./refusals.js";
import type { Served } from "./served.js";

/**
 * cua-driver's own MCP server as we serve it: lists and texts from the files that were read from its executable, tools from
 * its daemon. What it answers is what `cua-driver mcp` answers, character by character.
 */
export class CuaServer implements ForwardedServer {
  readonly name = "cua-driver";
  readonly #lists: Readonly<Partial<Record<ListKind, ForwardedList>>>;
  /** By URI, the result of `resources/read`. */
  readonly #reads: ReadonlyMap<string, RawJson>;
  /** By URI, the result of `skills/get`. */
  readonly #skills: ReadonlyMap<string, RawJson>;

  constructor(
    private readonly served: Served,
    private readonly tools: ToolForwarding,
  ) {
    const { texts, resources, skills, listKeys } = served;
    const lists = new ListCache();
    const all = membersOf(texts.tools);
    const rest = Object.keys(listKeys).map((key) => {
      const span = all?.get(key);
      return `${JSON.stringify(key)}:${texts.tools.slice(span?.start, span?.end)}`;
    });
    this.#lists = {
      tools: { items: lists.read("tools", [texts.tools]).items, rest: rest.join(","), whole: undefined },
      resources: lists.read("resources", [texts.resources]),
      skills: lists.read("skills", [texts.skills]),
    };
    this.#reads = new Map(resources.map(({ entry }, at) => [entry.uri, new RawJson(texts.reads[at] ?? "{}")]));
    const entries = memberText(texts.skills, "skills") ?? "[]";
    const spans = elementsOf(entries) ?? [];
    this.#skills = new Map(
      skills.map(({ uri }, at) => [uri, new RawJson(`{"skill":${entries.slice(spans[at]?.start, spans[at]?.end)}}`)]),
    );
  }

  async open(): Promise<ForwardedCatalog> {
    const { capabilities, instructions } = this.served;
    return { capabilities, instructions, lists: this.#lists };
  }

  async list(kind: ListKind): Promise<ForwardedList | RawError> {
    return this.#lists[kind] ?? this.#unknownMethod(LIST_METHODS[kind]);
  }

  async request(method: string, params: string, call: ForwardedCall): Promise<RawJson> {
    switch (method) {
      case "tools/call":
        return this.#call(params, call);
      case "resources/list":
        return has(params, "cursor") ? this.#refusal("resourceCursor") : new RawJson(this.served.texts.resources);
      case "resources/read":
        return this.#byUri(this.#reads, params, "noResourceUri", "unknownResource");
      case "skills/list":
        return has(params, "cursor") ? this.#refusal("skillCursor") : new RawJson(this.served.texts.skills);
      case "skills/get":
        return this.#byUri(this.#skills, params, "noSkillUri", "unknownSkill");
      default:
        return this.#unknownMethod(method);
    }
  }

  notify(_message: string, _caller: Caller): void {}

  async close(): Promise<void> {}

  async #call(params: string, call: ForwardedCall): Promise<RawJson> {
    const members = membersOf(params);
    const span = members?.get("name");
    const name: unknown = span && JSON.parse(params.slice(span.start, span.end));
    if (typeof name !== "string") return this.#refusal("noToolName");
    const given = members?.get("arguments");
    const argumentsText = given === undefined ? "{}" : params.slice(given.start, given.end);
    if (!argumentsText.startsWith("{")) return this.#refusal("badArguments");
    return await this.tools.call(name, argumentsText, call);
  }

  #byUri(texts: ReadonlyMap<string, RawJson>, params: string, none: RefusalName, unknown: RefusalName): RawJson {
    const text = memberText(params, "uri");
    const uri: unknown = text && JSON.parse(text);
    if (typeof uri !== "string") return this.#refusal(none);
    return texts.get(uri) ?? this.#refusal(unknown);
  }

  #refusal(name: RefusalName): RawError {
    return new RawError(this.served.texts.refusals[name]);
  }

  #unknownMethod(method: string): RawError {
    const { text } = this.#refusal("unknownMethod");
    return new RawError(text.replaceAll(UNKNOWN_METHOD, () => JSON.stringify(method).slice(1, -1)));
  }
}

const LIST_METHODS: Readonly<Record<ListKind, string>> = {
  tools: "tools/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
  prompts: "prompts/list",
  skills: "skills/list",
};

function has(params: string, name: string): boolean {
  return membersOf(params)?.has(name) === true;
}
