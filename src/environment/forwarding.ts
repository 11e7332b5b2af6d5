import { SetupError } from "../errors.js";
import type { RawJson } from "../protocol/raw-json.js";
import { RawError } from "../protocol/raw-json.js";
import { SKILLS_EXTENSION } from "../protocol/skill.js";
import type { JsonObject, ToolDefinition } from "../protocol/tool.js";
import type { ToolContext } from "./context.js";
import type {
  ForwardedCall,
  ForwardedCatalog,
  ForwardedChange,
  ForwardedItem,
  ForwardedList,
  ForwardedServer,
  ListKind,
} from "./forwarded-server.js";
import { ForwardedTool } from "./served-tool.js";
import { UriTemplate } from "./uri-template.js";

/** A server that is forwarded, with what it serves as it was last seen. */
interface Forwarded {
  readonly server: ForwardedServer;
  catalog: ForwardedCatalog;
}

/** The other MCP servers that an environment forwards, and which of them serves what. */
export class Forwarding {
  private constructor(private readonly forwarded: readonly Forwarded[]) {}

  /** Connects to each server. A server that can't be reached is a SetupError, and leaves none open. */
  static async open(
    servers: readonly ForwardedServer[],
    changed: (server: ForwardedServer, change: ForwardedChange) => void,
  ): Promise<Forwarding> {
    const opened = await Promise.allSettled(
      servers.map(async (server) => ({ server, catalog: await server.open((change) => changed(server, change)) })),
    );
    const failed = opened.find((each) => each.status === "rejected");
    if (failed !== undefined) {
      await Promise.allSettled(servers.map((server) => server.close()));
      throw failed.reason;
    }
    return new Forwarding(opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : [])));
  }

  get empty(): boolean {
    return this.forwarded.length === 0;
  }

  /** The one server that gets what nobody here knows; undefined where there are several, or none. */
  get only(): ForwardedServer | undefined {
    return this.forwarded.length === 1 ? this.forwarded[0]?.server : undefined;
  }

  get capabilities(): JsonObject[] {
    return this.forwarded.map(({ catalog }) => catalog.capabilities);
  }

  get instructions(): string[] {
    return this.forwarded.flatMap(({ catalog }) => catalog.instructions ?? []);
  }

  /** Takes over how a server's list is now; one that not all callers see adds to what is known. */
  changed(server: ForwardedServer, { kind, list, forAll = false }: Exclude<ForwardedChange, { kind: "said" }>): void {
    const known = this.forwarded.find((each) => each.server === server);
    if (known === undefined) return;
    const { lists } = known.catalog;
    const keys = new Set(list.items.map(({ key }) => key));
    const before = forAll ? [] : (lists[kind]?.items ?? []).filter(({ key }) => !keys.has(key));
    known.catalog = { ...known.catalog, lists: { ...lists, [kind]: { ...list, items: [...before, ...list.items] } } };
  }

  /** Whether one of the servers lists a tool now, as far as is known. */
  listsTool(name: string): boolean {
    return this.forwarded.some(({ catalog }) => catalog.lists.tools?.items.some(({ key }) => key === name));
  }

  /** What the servers list, each entry with its server's name. */
  entries(kind: ListKind): { key: string; server: string }[] {
    return this.forwarded.flatMap(({ server, catalog }) =>
      (catalog.lists[kind]?.items ?? []).map(({ key }) => ({ key, server: server.name })),
    );
  }

  tools(): ForwardedTool[] {
    return this.forwarded.flatMap(({ server, catalog }) =>
      (catalog.lists.tools?.items ?? []).map((item) => toTool(server, item)),
    );
  }

  /** The server that a prompt's name, a resource's URI or a template belongs to. */
  serverOf(kind: Exclude<ListKind, "tools">, key: string): ForwardedServer | undefined {
    const owner = this.forwarded.find(({ catalog }) => {
      if (catalog.lists[kind]?.items.some((item) => item.key === key)) return true;
      return kind === "resources" && (catalog.lists.resourceTemplates?.items ?? []).some((item) => fits(item.key, key));
    });
    return owner?.server ?? this.only;
  }

  /** The servers that have a capability, such as `logging`. */
  serversWith(capability: string): ForwardedServer[] {
    return this.forwarded.flatMap(({ server, catalog }) =>
      Object.hasOwn(catalog.capabilities, capability) ? [server] : [],
    );
  }

  /** The servers that serve skills. */
  get skillServers(): ForwardedServer[] {
    return this.forwarded.flatMap(({ server, catalog }) => (skillsOf(catalog) === undefined ? [] : [server]));
  }

  /** Whether a server reads the folders of its skills. */
  readsDirectories(server: ForwardedServer): boolean {
    const catalog = this.forwarded.find((each) => each.server === server)?.catalog;
    return catalog !== undefined && skillsOf(catalog)?.directoryRead === true;
  }

  /**
   * Each server's list as it shows it to a caller. Where there is but one server, its error is the answer; of several, one that
   * can't be reached lists what it last did, and its calls say so.
   */
  async lists(kind: ListKind, call: ForwardedCall): Promise<ForwardedList[] | RawError> {
    const lists = await Promise.all(
      this.forwarded.map(({ server, catalog }) => {
        const list = server.list(kind, call);
        return this.only === undefined ? list.catch(() => catalog.lists[kind]) : list;
      }),
    );
    const [first] = lists;
    if (lists.length === 1 && first instanceof RawError) return first;
    return lists.filter((list): list is ForwardedList => list !== undefined && !(list instanceof RawError));
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.forwarded.map(({ server }) => server.close()));
  }
}

/** The settings of the Skills extension, undefined for a server that doesn't have it. */
function skillsOf({ capabilities }: ForwardedCatalog): JsonObject | undefined {
  const extensions = capabilities.extensions as JsonObject | undefined;
  return extensions?.[SKILLS_EXTENSION] as JsonObject | undefined;
}

/** A server's tool, called with the request that the client wrote. */
export function toTool(server: ForwardedServer, { text }: ForwardedItem): ForwardedTool {
  const forward = (args: JsonObject, context: ToolContext) => callTool(server, args, context);
  return new ForwardedTool(JSON.parse(text) as ToolDefinition, forward, text, false, server);
}

/** Sends a tool call on as the client wrote it. */
export function callTool(server: ForwardedServer, args: JsonObject, context: ToolContext): Promise<RawJson> {
  const { client, tool, caller, role, signal } = context;
  const params = client?.paramsText ?? JSON.stringify({ name: tool, arguments: args });
  return server.request("tools/call", params, { caller, role, signal, client });
}

function fits(template: string, uri: string): boolean {
  try {
    return new UriTemplate(template).match(uri) !== undefined;
  } catch (thrown) {
    // A template of a kind that we don't read claims nothing.
    if (thrown instanceof SetupError) return false;
    throw thrown;
  }
}
