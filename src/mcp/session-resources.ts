import { AgentEnvError } from "../errors.js";
import { invalid, type McpSession, type Params, refuseCursor, rpcError } from "./session.js";

/** Source: Model Context Protocol 2025-11-25, "Resources", "Error Handling". */
const RESOURCE_NOT_FOUND = -32002;
const MAX_SUBSCRIPTIONS = 1_000;

/** Serves an environment's resources to a session. */
export function serveResources(session: McpSession): void {
  const { resources } = session.application;
  if (resources.empty) return;

  session.handle("resources/list", async (request) => {
    refuseCursor(request.params);
    return { resources: await resources.list(session.contextOf(request)) };
  });

  session.handle("resources/read", async (request) => {
    const uri = uriOf(request.params);
    const contents = await resources.read(uri, session.contextOf(request));
    if (contents === undefined) throw rpcError(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`, { uri });
    return { contents };
  });

  session.handle("resources/templates/list", ({ params }) => {
    refuseCursor(params);
    return { resourceTemplates: resources.templates.map((template) => template.definition) };
  });

  if (!resources.subscribable) return;
  session.handle("resources/subscribe", ({ params }) => {
    const uri = uriOf(params);
    if (!resources.takesSubscribers(uri)) throw rpcError(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`, { uri });
    if (session.subscriptions.size >= MAX_SUBSCRIPTIONS) {
      throw new AgentEnvError("limit_exceeded", `a session subscribes to at most ${MAX_SUBSCRIPTIONS} resources`);
    }
    session.subscriptions.add(uri);
    return {};
  });

  session.handle("resources/unsubscribe", ({ params }) => {
    session.subscriptions.delete(uriOf(params));
    return {};
  });
}

function uriOf(params: Params): string {
  if (typeof params.uri !== "string") throw invalid("params.uri is the URI of a resource");
  return params.uri;
}
