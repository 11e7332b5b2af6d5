import type { IncomingMessage } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { RequestId, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv-provider.js";
import type { Application, ApplicationChange } from "../environment/application.js";
import { type Caller, claimOf } from "../environment/caller.js";
import type { ClientSession, TextAnswer } from "../environment/client-peer.js";
import type { ResourceContext } from "../environment/resource.js";
import { LOG_LEVELS, type LogLevel } from "../protocol/prompt.js";
import type { JsonObject } from "../protocol/tool.js";
import type { Callers } from "./callers.js";
import { capabilitiesOf } from "./capabilities.js";
import { type McpRequest, OwnRequests, type RequestHandler } from "./own-requests.js";
import { invalid } from "./rpc-error.js";
import type { ServedSkills } from "./served-skills.js";
import { forward, serveUnknown } from "./session-forward.js";
import { servePrompts } from "./session-prompts.js";
import { serveResources } from "./session-resources.js";
import { serveSkills } from "./session-skills.js";
import { serveTools } from "./session-tools.js";
import { SessionTransport } from "./session-transport.js";
import { Turns, type Wakefulness } from "./wakefulness.js";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
export type Params = Record<string, unknown>;

/** The SDK's Server makes a validator of its own, a quarter of a megabyte, unless it is handed one. */
const validator = new AjvJsonSchemaValidator();

/** One MCP session: the SDK's protocol layer over our transport, and what the session has asked for. */
export class McpSession implements ClientSession {
  readonly transport: SessionTransport;
  readonly #server: Server;
  readonly #requests: OwnRequests;
  /** The resources whose changes the client wants to hear of. */
  readonly subscriptions = new Set<string>();
  /** Less serious messages than this aren't sent. */
  #logLevel: LogLevel = "debug";
  lastUsed = performance.now();

  constructor(
    readonly application: Application,
    readonly skills: ServedSkills,
    private readonly callers: Callers,
    wakefulness: Wakefulness,
    readonly id: string,
    /** The params of the client's `initialize`. */
    private readonly hello: Params,
    closed: () => void,
  ) {
    const used = () => {
      this.lastUsed = performance.now();
    };
    this.transport = new SessionTransport(id, used, new Turns(wakefulness));
    this.#requests = new OwnRequests(
      (answer) => this.transport.answer(answer),
      (thrown, method) => application.log.error({ err: thrown, method }, "a request failed in an unforeseen way"),
    );
    this.transport.requests = this.#requests;
    const { environment, instructions } = application;
    this.#server = new Server(
      { name: application.name, version: environment.environmentVersion },
      {
        capabilities: capabilitiesOf(application, !skills.empty),
        ...(instructions === undefined ? {} : { instructions }),
        jsonSchemaValidator: validator,
      },
    );
    serveTools(this);
    serveResources(this);
    serveSkills(this);
    servePrompts(this);
    const logging = application.forwarding.serversWith("logging");
    if (environment.logs || logging.length > 0) {
      this.handle("logging/setLevel", async (request) => {
        const answers = await Promise.all(logging.map((server) => forward(this, server, request)));
        return answers.length === 1 && !environment.logs
          ? (answers[0] as object)
          : this.#setLogLevel(request.params.level);
      });
    }
    serveUnknown(this, this.#server);
    this.#server.onclose = closed;
    // The transport starts in the same turn: connect() has nothing to wait for before it takes messages.
    void this.#server.connect(this.transport);
  }

  get capabilities(): JsonObject {
    return (this.hello.capabilities ?? {}) as JsonObject;
  }

  get clientInfo(): JsonObject {
    return (this.hello.clientInfo ?? {}) as JsonObject;
  }

  get listening(): boolean {
    return this.transport.listening;
  }

  say(message: string, related?: RequestId): boolean {
    return this.transport.say(message, related);
  }

  ask(method: string, params: string, related: RequestId | undefined, signal: AbortSignal): Promise<TextAnswer> {
    return this.transport.ask(method, params, related, signal);
  }

  /** Answers the requests of a method. What `handler` throws is answered as the JSON-RPC error that it means. */
  handle(method: string, handler: RequestHandler): void {
    this.#requests.serve(method, handler);
  }

  /** Who a request comes from. */
  callerOf({ params, source }: Pick<McpRequest, "params" | "source">): { caller: Caller; role: string | undefined } {
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
    if (change.kind === "said") {
      const { params } = JSON.parse(change.text) as { params?: { uri?: string } };
      const wanted = change.method !== "notifications/resources/updated" || this.subscriptions.has(params?.uri ?? "");
      if (wanted) this.say(change.text);
    } else if (change.kind !== "updated") {
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
