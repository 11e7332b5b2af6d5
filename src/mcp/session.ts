import type { IncomingMessage } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { Protocol, type RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  ErrorCode,
  type RequestId,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv-provider.js";
import { z } from "zod";
import type { Application, ApplicationChange } from "../environment/application.js";
import { type Caller, claimOf } from "../environment/caller.js";
import type { ResourceContext } from "../environment/resource.js";
import { AgentEnvError } from "../errors.js";
import { LOG_LEVELS, type LogLevel } from "../protocol/prompt.js";
import type { JsonObject } from "../protocol/tool.js";
import type { Callers } from "./callers.js";
import { servePrompts } from "./session-prompts.js";
import { serveResources } from "./session-resources.js";
import { serveTools } from "./session-tools.js";
import { type RequestSource, SessionTransport } from "./session-transport.js";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
export type Params = Record<string, unknown>;

/** One MCP request, as a handler sees it. */
export interface McpRequest {
  readonly params: Params;
  readonly id: RequestId;
  readonly signal: AbortSignal;
  readonly source: RequestSource;
}

/** The SDK's Server makes a validator of its own, a quarter of a megabyte, unless it is handed one. */
const validator = new AjvJsonSchemaValidator();

/** One MCP session: the SDK's protocol layer over our transport, and what the session has asked for. */
export class McpSession {
  readonly transport: SessionTransport;
  readonly #server: Server;
  /** The resources whose changes the client wants to hear of. */
  readonly subscriptions = new Set<string>();
  /** Less serious messages than this aren't sent. */
  #logLevel: LogLevel = "debug";
  lastUsed = performance.now();

  constructor(
    readonly application: Application,
    private readonly callers: Callers,
    readonly id: string,
    closed: () => void,
  ) {
    this.transport = new SessionTransport(id, () => {
      this.lastUsed = performance.now();
    });
    const { environment, instructions } = application;
    this.#server = new Server(
      { name: application.name, version: environment.environmentVersion },
      {
        capabilities: capabilitiesOf(application),
        ...(instructions === undefined ? {} : { instructions }),
        jsonSchemaValidator: validator,
      },
    );
    serveTools(this);
    serveResources(this);
    servePrompts(this);
    if (environment.logs) this.handle("logging/setLevel", ({ params }) => this.#setLogLevel(params.level));
    this.#server.onclose = closed;
    // The transport starts in the same turn: connect() has nothing to wait for before it takes messages.
    void this.#server.connect(this.transport);
  }

  /** What the client declared in `initialize`. */
  get clientCapabilities(): JsonObject {
    return (this.#server.getClientCapabilities() ?? {}) as JsonObject;
  }

  /**
   * Registers a handler below the SDK's Server, whose own registration strips unknown keys from a tool's content blocks and
   * refuses block types that it doesn't know.
   */
  handle(method: string, handler: (request: McpRequest) => object | Promise<object>): void {
    const schema = z.looseObject({ method: z.literal(method), params: z.looseObject({}).optional() });
    const register = Protocol.prototype.setRequestHandler<typeof schema>;
    (register as (this: unknown, ...args: Parameters<typeof register>) => void).call(this.#server, schema, (async (
      { params = {} }: { params?: Params },
      { requestId, signal, requestInfo }: Extra,
    ) => {
      try {
        return await handler({ params, id: requestId, signal, source: requestInfo as unknown as RequestSource });
      } catch (thrown) {
        if (!(thrown instanceof AgentEnvError)) throw thrown;
        const code = thrown.code === "invalid_argument" ? ErrorCode.InvalidParams : ErrorCode.InvalidRequest;
        throw rpcError(code, thrown.message, thrown.fields());
      }
    }) as unknown as Parameters<typeof register>[1]);
  }

  /** Who a request comes from. */
  callerOf({ params, source }: McpRequest): { caller: Caller; role: string | undefined } {
    const { role, session } = this.claimOf(params, source.headers);
    return { role, caller: this.callers.of(session ?? this.id, this.id) };
  }

  claimOf(params: Params, headers: IncomingMessage["headers"]): ReturnType<typeof claimOf> {
    return claimOf(params._meta, headers, this.id);
  }

  /** The context of a request that isn't a tool call. */
  contextOf(request: McpRequest): ResourceContext {
    return { ...this.callerOf(request), signal: request.signal };
  }

  /** Whether the client wants to see messages as serious as this. */
  logs(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.#logLevel);
  }

  #setLogLevel(level: unknown): object {
    const known = LOG_LEVELS.find((each) => each === level);
    if (known === undefined) throw invalid(`params.level is one of ${LOG_LEVELS.join(", ")}`);
    this.#logLevel = known;
    return {};
  }

  /** Tells the client of a change that it can see or has subscribed to. */
  tell(change: ApplicationChange): void {
    if (change.kind !== "updated") {
      this.notify(`notifications/${change.kind}/list_changed`);
    } else if (this.subscriptions.has(change.uri)) {
      this.notify("notifications/resources/updated", { uri: change.uri });
    }
  }

  /** Sends a notification: with the request that it belongs to, else on the stream for what is said unasked. */
  notify(method: string, params?: JsonObject, related?: RequestId): void {
    this.transport.say(
      JSON.stringify({ method, ...(params === undefined ? {} : { params }), jsonrpc: "2.0" }),
      related,
    );
  }

  /** Closes the session at once. Idempotent. */
  close(): Promise<void> {
    return this.#server.close();
  }
}

/** What the application has something to serve for. */
function capabilitiesOf(application: Application): JsonObject {
  const { resources, prompts, tools, environment } = application;
  const completes = [...resources.templates, ...prompts].some((each) => each.complete !== undefined);
  return {
    ...(tools.length > 0 ? { tools: { listChanged: true } } : {}),
    ...(resources.empty
      ? {}
      : {
          resources: {
            ...(resources.subscribable ? { subscribe: true } : {}),
            ...(resources.changing ? { listChanged: true } : {}),
          },
        }),
    ...(prompts.length > 0 ? { prompts: {} } : {}),
    ...(completes ? { completions: {} } : {}),
    ...(environment.logs ? { logging: {} } : {}),
  };
}

/** A JSON-RPC error. Its message goes out as it is, without the SDK's prefix. */
export function rpcError(code: number, message: string, data?: object): Error {
  return Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) });
}

/** An error of the request itself. */
export function invalid(message: string, data?: object): Error {
  return rpcError(ErrorCode.InvalidParams, message, data);
}

/** A list that fits one page has no cursor, so any that a client sends is not ours. */
export function refuseCursor(params: Params): void {
  if (params.cursor !== undefined) throw invalid("params.cursor: this list has one page");
}
