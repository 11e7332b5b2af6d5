import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { Protocol, type RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { ErrorCode, McpError, type ServerNotification, type ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv-provider.js";
import { z } from "zod";
import type { Application } from "../environment/application.js";
import { claimOf } from "../environment/caller.js";
import { AgentEnvError } from "../errors.js";
import { RawJson } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import type { Callers } from "./callers.js";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Params = Record<string, unknown>;

/** The SDK's Server makes a validator of its own, a quarter of a megabyte, unless it is handed one. */
const validator = new AjvJsonSchemaValidator();

/** The MCP server of one session: the environment's tools and resources for the callers that the session brings. */
export function createSessionServer(application: Application, callers: Callers, sessionId: string): Server {
  const { environment, instructions, resources } = application;
  const server = new Server(
    { name: application.name, version: environment.environmentVersion },
    {
      capabilities: { tools: { listChanged: true }, ...(resources.length > 0 ? { resources: {} } : {}) },
      ...(instructions === undefined ? {} : { instructions }),
      jsonSchemaValidator: validator,
    },
  );
  const claim = (params: Params, extra: Extra) => claimOf(params._meta, extra.requestInfo?.headers ?? {}, sessionId);

  handle(server, "tools/list", (params, extra) => {
    refuseCursor(params);
    return new RawJson(application.toolListJson(claim(params, extra).role));
  });

  handle(server, "tools/call", async (params, extra) => {
    const { name, arguments: args = {} } = params;
    if (typeof name !== "string") throw invalid("params.name is the name of a tool");
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      throw invalid("params.arguments is an object");
    }
    const { role, session } = claim(params, extra);
    const caller = callers.of(session ?? sessionId, sessionId);
    const result = await application.callTool(name, args as JsonObject, {
      caller,
      role,
      signal: extra.signal,
      progress: progressOf(params, extra),
    });
    if (result === undefined) throw invalid(`Unknown tool: ${name}`);
    return result;
  });

  if (resources.length > 0) {
    const byUri = new Map(resources.map((resource) => [resource.definition.uri, resource]));
    handle(server, "resources/list", (params) => {
      refuseCursor(params);
      return { resources: resources.map((resource) => resource.definition) };
    });
    handle(server, "resources/read", async (params) => {
      const resource = typeof params.uri === "string" ? byUri.get(params.uri) : undefined;
      if (resource === undefined) throw invalid(`Unknown resource: ${String(params.uri)}`, { uri: params.uri });
      return { contents: [await resource.read()] };
    });
  }
  return server;
}

/**
 * Registers a handler below the SDK's Server, whose own registration strips unknown keys from a tool's content blocks and
 * refuses block types that it doesn't know.
 */
function handle(
  server: Server,
  method: string,
  handler: (params: Params, extra: Extra) => object | Promise<object>,
): void {
  const schema = z.looseObject({ method: z.literal(method), params: z.looseObject({}).optional() });
  const register = Protocol.prototype.setRequestHandler<typeof schema>;
  (register as (this: unknown, ...args: Parameters<typeof register>) => void).call(server, schema, (async (
    request: { params?: Params },
    extra: Extra,
  ) => {
    try {
      return await handler(request.params ?? {}, extra);
    } catch (thrown) {
      if (thrown instanceof AgentEnvError)
        throw new McpError(ErrorCode.InvalidRequest, thrown.message, thrown.fields());
      throw thrown;
    }
  }) as unknown as Parameters<typeof register>[1]);
}

/** A list that fits one page has no cursor, so any that a client sends is not ours. */
function refuseCursor(params: Params): void {
  if (params.cursor !== undefined) throw invalid("params.cursor: this list has one page");
}

/** An error of the request itself. Its message goes out as it is, without the SDK's prefix. */
function invalid(message: string, data?: object): Error {
  return Object.assign(new Error(message), { code: ErrorCode.InvalidParams, ...(data === undefined ? {} : { data }) });
}

function progressOf(params: Params, extra: Extra): (progress: number, total?: number, message?: string) => void {
  const token = extra._meta?.progressToken ?? (params._meta as Params | undefined)?.progressToken;
  if (token === undefined) return () => {};
  return (progress, total, message) => {
    const notification = {
      method: "notifications/progress",
      params: {
        progressToken: token,
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      },
    } as ServerNotification;
    // A client that went away is told nothing; its call ends by itself.
    extra.sendNotification(notification).catch(() => {});
  };
}
