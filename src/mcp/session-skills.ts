import type { ForwardedList } from "../environment/forwarded-server.js";
import type { ResourceDefinition } from "../environment/resource.js";
import { RawError, type RawJson } from "../protocol/raw-json.js";
import { SkillEntry } from "../protocol/skill.js";
import type { McpRequest } from "./own-requests.js";
import { invalid } from "./rpc-error.js";
import type { McpSession } from "./session.js";
import { callOf, forward, malformed } from "./session-forward.js";
import { directoriesOf, type SkillCatalog } from "./skill-catalog.js";

const NO_URI = "params.uri is a URI";

/**
 * Serves an environment's skills to a session, beside those of the servers behind. Where we have none, what one server behind
 * has passes through as any method that we don't know. Source: SEP-2640, "io.modelcontextprotocol/skills".
 */
export function serveSkills(session: McpSession): void {
  const { skills, application } = session;
  const { forwarding } = application;
  const behind = forwarding.skillServers;
  if (skills.empty && (behind.length === 0 || forwarding.only !== undefined)) return;

  const catalogOf = ({ params, source }: McpRequest): SkillCatalog =>
    skills.of(session.claimOf(params, source.headers).role);

  const listsOf = async (request: McpRequest): Promise<ForwardedList[]> => {
    if (behind.length === 0) return [];
    const call = callOf(session, request);
    const lists = await Promise.all(behind.map((server) => server.list("skills", call)));
    return lists.filter((list): list is ForwardedList => !(list instanceof RawError));
  };

  session.handle("skills/list", async (request) => {
    const pages = skills.pages(catalogOf(request), await listsOf(request));
    const { cursor } = request.params;
    const page = cursor === undefined ? pages[0] : pages.find((_page, at) => at > 0 && String(at) === cursor);
    return page ?? malformed(session, request, "params.cursor is the nextCursor of a page of this list");
  });

  session.handle("skills/get", async (request) => {
    const { uri } = request.params;
    if (typeof uri !== "string") return malformed(session, request, NO_URI);
    const own = catalogOf(request).skill(uri);
    if (own !== undefined) return own;
    const server = behind.length === 0 ? undefined : forwarding.serverOf("skills", uri);
    if (server !== undefined) return forward(session, server, request);
    throw invalid(`Unknown skill: ${uri}`, { uri });
  });

  session.handle("resources/directory/read", async (request) => {
    const { uri, cursor } = request.params;
    if (typeof uri !== "string") throw invalid(NO_URI);
    const found = catalogOf(request).directory(uri) ?? (await behindDirectory(session, request, uri));
    if (found === undefined) throw invalid(`No directory: ${uri}`, { uri });
    if (cursor !== undefined && !(found instanceof RawError)) throw invalid("params.cursor: this list has one page");
    return found;
  });
}

/**
 * A folder of a skill that a server behind serves: read there, or, where that server doesn't read folders, made of what it
 * lists. We say that folders can be read, and that holds for each skill that we list.
 */
async function behindDirectory(
  session: McpSession,
  request: McpRequest,
  uri: string,
): Promise<RawJson | object | undefined> {
  const { forwarding } = session.application;
  const call = callOf(session, request);
  for (const server of forwarding.skillServers) {
    const skills = await server.list("skills", call);
    if (skills instanceof RawError) continue;
    for (const { text } of skills.items) {
      const { success, data } = SkillEntry.safeParse(JSON.parse(text));
      const root = success ? data.uri.replace(/\/SKILL\.md$/, "") : undefined;
      if (root === undefined || (uri !== root && !uri.startsWith(`${root}/`))) continue;
      if (forwarding.readsDirectories(server)) return forward(session, server, request);
      if (!success || data.resources === "dynamic") continue;
      const listed = await server.list("resources", call);
      const definitions = new Map(
        listed instanceof RawError ? [] : listed.items.map((item) => [item.key, item.text] as const),
      );
      const files = data.resources.map(({ uri: file, size }): ResourceDefinition => {
        const known = definitions.get(file);
        return known === undefined
          ? { uri: file, name: decodeURIComponent(file.slice(root.length + 1)), size }
          : (JSON.parse(known) as ResourceDefinition);
      });
      const children = directoriesOf(root, files).get(uri);
      if (children !== undefined) return { resources: children };
    }
  }
  return undefined;
}
