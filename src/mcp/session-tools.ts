import { isAmbiguous } from "../protocol/json-text.js";
import { RawError } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import { toolPage } from "./forward/list-cache.js";
import { keptJson } from "./kept-json.js";
import type { McpRequest } from "./own-requests.js";
import { invalid, ONE_PAGE } from "./rpc-error.js";
import type { McpSession } from "./session.js";
import { callOf, malformed, type SessionCall } from "./session-forward.js";

const AMBIGUOUS = "params.name comes once, and beside it no member that differs from it by case alone";

/** Serves an environment's tools to a session. */
export function serveTools(session: McpSession): void {
  const { application } = session;
  const { forwarding } = application;
  if (application.tools.length === 0 && forwarding.serversWith("tools").length === 0) return;

  session.handle("tools/list", async (request) => {
    const { params, source } = request;
    const { role } = session.claimOf(params, source.headers);
    if (params.cursor !== undefined) {
      const answer = await malformed(session, request, ONE_PAGE);
      // A page of the one server behind, less what is hidden from this caller.
      return answer instanceof RawError ? answer : keptJson(application.toolListJson(role, [toolPage(answer.text)]));
    }
    if (forwarding.empty) return keptJson(application.toolListJson(role));
    const lists = await forwarding.lists("tools", callOf(session, request));
    if (lists instanceof RawError)
      return application.tools.length === 0 ? lists : keptJson(application.toolListJson(role));
    return keptJson(application.toolListJson(role, lists));
  });

  session.handle("tools/call", (request) => {
    const { name } = request.params;
    if (typeof name !== "string") return malformed(session, request, "params.name is the name of a tool");
    const call = callOf(session, request);
    // What is decided by the name that we read mustn't run under another one that the server behind reads.
    if (application.isBehind(name) && isAmbiguous(call.client.paramsText, "name")) throw invalid(AMBIGUOUS);
    const server = application.passesOn(name, call.role);
    if (server === undefined) return callHere(name, request, call);
    const failed = (thrown: unknown) => application.failure(thrown, name, request.signal);
    try {
      return server.request(request.method, call.client.paramsText, call).catch(failed);
    } catch (thrown) {
      return failed(thrown);
    }
  });

  const callHere = async (name: string, request: McpRequest, call: SessionCall): Promise<object> => {
    const { arguments: args = {} } = request.params;
    const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
    if (!isObject && !application.isBehind(name)) throw invalid("params.arguments is an object");
    const result = await application.callTool(name, args as JsonObject, {
      ...call,
      progress: progressOf(session, request),
    });
    if (result === undefined) throw invalid(`Unknown tool: ${name}`);
    return result;
  };
}

function progressOf(session: McpSession, { params, id, signal }: McpRequest) {
  const progressToken = (params._meta as JsonObject | undefined)?.progressToken;
  if (progressToken === undefined) return () => {};
  return (progress: number, total?: number, message?: string): void => {
    if (signal.aborted) return;
    const more = { ...(total === undefined ? {} : { total }), ...(message === undefined ? {} : { message }) };
    session.notify("notifications/progress", { progressToken, progress, ...more }, id);
  };
}
