import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { AgentEnvError } from "../errors.js";
import { RawError } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import { ONE_PAGE, rpcError } from "./rpc-error.js";
import type { McpSession } from "./session.js";
import { forward, joinedList, malformed } from "./session-forward.js";

/** Of a file of a skill it is InvalidParams, by SEP-2640. Source: Model Context Protocol 2025-11-25, "Resources". */
const RESOURCE_NOT_FOUND = -32002;
const NO_URI = "params.uri is the URI of a resource";
const MAX_SUBSCRIPTIONS = 1_000;

/** Serves an environment's resources to a session. */
export function serveResources(session: McpSession): void {
  const { skills } = session;
  const { resources, forwarding } = session.application;
  if (resources.empty && skills.empty && forwarding.serversWith("resources").length === 0) return;

  session.handle("resources/list", async (request) => {
    if (request.params.cursor !== undefined) return malformed(session, request, ONE_PAGE);
    const context = session.contextOf(request);
    const own = [...skills.of(context.role).resources, ...(await resources.list(context))];
    return joinedList(session, "resources", request, own);
  });

  session.handle("resources/read", async (request) => {
    const { uri } = request.params;
    if (typeof uri !== "string") return malformed(session, request, NO_URI);
    const context = session.contextOf(request);
    const file = skills.of(context.role).read(uri);
    const contents = file === undefined ? await resources.read(uri, context) : [file];
    if (contents !== undefined) return { contents };
    const behind = forwarding.serverOf("resources", uri);
    if (behind !== undefined) return forward(session, behind, request);
    const code = uri.startsWith("skill://") && !skills.empty ? ErrorCode.InvalidParams : RESOURCE_NOT_FOUND;
    throw rpcError(code, `Resource not found: ${uri}`, { uri });
  });

  session.handle("resources/templates/list", async (request) => {
    if (request.params.cursor !== undefined) return malformed(session, request, ONE_PAGE);
    const own = resources.templates.map((template) => template.definition);
    return joinedList(session, "resourceTemplates", request, own);
  });

  const behindTakes = forwarding.capabilities.some(
    ({ resources: has }) => (has as JsonObject | undefined)?.subscribe === true,
  );
  if (!resources.subscribable && !behindTakes) return;
  session.handle("resources/subscribe", async (request) => {
    const { uri } = request.params;
    if (typeof uri !== "string") return malformed(session, request, NO_URI);
    const behind = resources.takesSubscribers(uri) ? undefined : forwarding.serverOf("resources", uri);
    if (behind === undefined && !resources.takesSubscribers(uri)) {
      throw rpcError(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`, { uri });
    }
    if (session.subscriptions.size >= MAX_SUBSCRIPTIONS) {
      throw new AgentEnvError("limit_exceeded", `a session subscribes to at most ${MAX_SUBSCRIPTIONS} resources`);
    }
    const answer = behind === undefined ? {} : await forward(session, behind, request);
    if (!(answer instanceof RawError)) session.subscriptions.add(uri);
    return answer;
  });

  session.handle("resources/unsubscribe", async (request) => {
    const { uri } = request.params;
    if (typeof uri !== "string") return malformed(session, request, NO_URI);
    session.subscriptions.delete(uri);
    const behind = resources.takesSubscribers(uri) ? undefined : forwarding.serverOf("resources", uri);
    return behind === undefined ? {} : forward(session, behind, request);
  });
}
