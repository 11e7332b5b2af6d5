import { RawJson } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import { CallPeer } from "./call-peer.js";
import { invalid, type McpRequest, type McpSession, refuseCursor } from "./session.js";

/** Serves an environment's tools to a session. */
export function serveTools(session: McpSession): void {
  const { application } = session;
  if (application.tools.length === 0) return;

  session.handle("tools/list", ({ params, source }) => {
    refuseCursor(params);
    return new RawJson(application.toolListJson(session.claimOf(params, source.headers).role));
  });

  session.handle("tools/call", async (request) => {
    const { name, arguments: args = {} } = request.params;
    if (typeof name !== "string") throw invalid("params.name is the name of a tool");
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      throw invalid("params.arguments is an object");
    }
    const result = await application.callTool(name, args as JsonObject, {
      ...session.callerOf(request),
      signal: request.signal,
      progress: progressOf(session, request),
      client: new CallPeer(session, request),
    });
    if (result === undefined) throw invalid(`Unknown tool: ${name}`);
    return result;
  });
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
