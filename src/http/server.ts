import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type onRequestHookHandler,
} from "fastify";
import type { Application } from "../environment/application.js";
import { claimOf } from "../environment/caller.js";
import { Environment, type Readiness } from "../environment/environment.js";
import type { ExtensionMethod } from "../environment/extension.js";
import { endpointOf } from "../environment/make-card.js";
import { AgentEnvError, messageOf } from "../errors.js";
import type { McpEndpoint } from "../mcp/endpoint.js";
import { CARD_PATH, DATA_PLANE_PATH, MCP_PATH } from "../protocol/card.js";
import { callDataPlane } from "./data-plane.js";
import { bodyParams, callExtension, errorAnswer, queryParams } from "./extension-call.js";
import { OriginCheck } from "./origin-check.js";
import { readBody } from "./read-body.js";
import type { TokenScope, Tokens } from "./tokens.js";

/** Source: AgentEnv protocol 1.0. */
const DATA_BODY_BYTES = 1 << 30;
const MCP_BODY_BYTES = 32 << 20;
const BODY_BYTES = 1 << 20;

export interface HttpOptions {
  log: FastifyBaseLogger;
  /** Without tokens everybody who reaches the server may use all of it. */
  tokens?: Tokens;
  /** Names that the Host and Origin headers may give, beside localhost and addresses. */
  allowedHosts?: readonly string[];
  /** Says that nobody adds to the app any more. */
  finished?: boolean;
}

/** The whole HTTP surface of an environment: card, data plane, extensions, tool access, health and `/mcp`. */
export function buildHttp(application: Application, mcp: McpEndpoint, options: HttpOptions): FastifyInstance {
  const app = fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger for each request is a tenth of what a short call costs, and nothing here logs with one.
    childLoggerFactory: (logger) => logger,
    bodyLimit: BODY_BYTES,
    // A slow or silent client is let go; a call itself may take longer, which these don't bound.
    requestTimeout: 300_000,
    connectionTimeout: 0,
    keepAliveTimeout: 72_000,
    forceCloseConnections: true,
    frameworkErrors: (error, request, reply) => {
      void sendError(reply, asError(error, request));
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  const refusalOf = guard(options);
  // Not async: a promise that is awaited before each request is time for nothing.
  app.addHook("onRequest", (request, reply, done) => {
    const refusal = refusalOf(request.raw);
    if (refusal?.status === 401) reply.header("www-authenticate", 'Bearer realm="agentenv"');
    done(refusal);
  });
  app.setErrorHandler((error, request, reply) => sendError(reply, asError(error, request)));
  app.setNotFoundHandler((request, reply) => {
    const { status, body } = errorAnswer(
      new AgentEnvError(
        "target_unavailable",
        `nothing is served at ${request.method} ${request.url.split("?", 1)[0]}`,
        {
          hint: `the card at ${CARD_PATH} says what is`,
        },
      ),
    );
    return reply.code(status).send(body);
  });

  app.get(CARD_PATH, async (_request, reply) => reply.type("application/json").send(await application.card()));
  app.get("/healthz", (_request, reply) => reply.send({ ok: true }));
  const health = (path: string, look: () => Promise<Readiness>) =>
    app.get(path, async (_request, reply) => {
      const readiness = await look();
      return reply.code(readiness.ready ? 200 : 503).send(readiness);
    });
  health("/readyz", () => application.environment.readiness());
  health("/startupz", () => application.environment.startup());
  app.post(DATA_PLANE_PATH, { bodyLimit: DATA_BODY_BYTES }, async (request, reply) => {
    const body = request.body as Buffer | undefined;
    const answer = await callDataPlane(application.data, body, (thrown) => {
      if (!(thrown instanceof AgentEnvError)) options.log.warn({ err: thrown }, "a data plane call failed");
      else options.log.info({ code: thrown.code, why: thrown.message }, "a data plane call was refused");
    });
    return answer === undefined ? reply.code(204).send() : reply.send(answer);
  });
  for (const extension of application.extensions) {
    for (const method of extension.methods) serveExtension(app, endpointOf(extension, method), method, options.log);
  }
  const receive = (request: IncomingMessage, response: ServerResponse) =>
    readBody(request, MCP_BODY_BYTES, (body) => {
      try {
        if (body === undefined) refuseRaw(response, tooLarge());
        else mcp.handle(request, response, body);
      } catch (thrown) {
        // Nobody is there to catch it, and one request mustn't end every other caller's.
        options.log.error({ err: thrown }, "an MCP request failed in a way that isn't foreseen");
        refuseRaw(response, new AgentEnvError("internal", `the request failed: ${messageOf(thrown)}`));
      }
    });
  // An MCP request is taken over once it is let in: what fastify would do on the way to a handler is a tenth of a short call.
  const takeOver: onRequestHookHandler = (request, reply) => {
    reply.hijack();
    receive(request.raw, reply.raw);
  };
  app.all(MCP_PATH, { onRequest: takeOver }, () => {});
  application.environment.routes(app);
  if (options.finished && application.environment.routes === Environment.prototype.routes) {
    // Nobody has added anything that an MCP request would have to pass, so it needn't go through the app: another tenth.
    takeAside(app.server, (request, response) => {
      if (request.url !== MCP_PATH || refusalOf(request) !== undefined) return false;
      receive(request, response);
      return true;
    });
  }
  return app;
}

/** Lets `take` have a look at each request before the server's own listener; true where it answers it. */
function takeAside(server: Server, take: (request: IncomingMessage, response: ServerResponse) => boolean): void {
  const listeners = server.listeners("request") as RequestListener[];
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    if (!take(request, response)) for (const listener of listeners) listener.call(server, request, response);
  });
}

function serveExtension(app: FastifyInstance, url: string, method: ExtensionMethod, log: FastifyBaseLogger): void {
  app.route({
    url,
    method: method.method,
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const params = () =>
        method.method === "GET"
          ? queryParams(request.query as Record<string, unknown>, method.request)
          : bodyParams(request.body as Buffer | undefined);
      const { role } = claimOf(undefined, request.headers, undefined);
      const answer = await callExtension(method, params, { role, signal: gone.signal }, (thrown) => {
        log.error({ err: thrown, url }, "an extension failed in a way it doesn't foresee");
      });
      return reply.code(answer.status).send(answer.body);
    },
  });
}

/** Health needs neither token nor a known Host: a kubelet sends the pod's address. */
const OPEN_PATHS = new Set(["/healthz", "/readyz", "/startupz"]);

function guard(options: HttpOptions): (request: IncomingMessage) => AgentEnvError | undefined {
  const origins = new OriginCheck(options.allowedHosts);
  return ({ url = "", headers }: IncomingMessage): AgentEnvError | undefined => {
    const path = url.split("?", 1)[0] ?? "";
    if (OPEN_PATHS.has(path)) return undefined;
    const refusal = origins.refusal(headers.host, headers.origin);
    if (refusal !== undefined) {
      return new AgentEnvError("permission_denied", refusal, { hint: "allow the name with --allowed-host NAME" });
    }
    if (options.tokens === undefined) return undefined;
    const scope = options.tokens.scopeOf(headers.authorization);
    const needed: TokenScope = path === MCP_PATH ? "agent" : "framework";
    if (scope === "framework" || scope === needed) return undefined;
    return new AgentEnvError("permission_denied", `this needs a bearer token of the scope "${needed}"`, {
      hint: "send the header Authorization: Bearer TOKEN",
      status: scope === undefined ? 401 : 403,
    });
  };
}

/** Fastify's own refusals (a body too large, a bad content length) and anything unforeseen, in the protocol's shape. */
function asError(error: unknown, request: FastifyRequest): AgentEnvError {
  if (error instanceof AgentEnvError) return error;
  const { statusCode = 500, message = String(error) } = error as { statusCode?: number; message?: string };
  if (statusCode === 413) {
    return tooLarge();
  }
  if (statusCode < 500) return new AgentEnvError("invalid_params", message, { status: statusCode });
  request.log.error({ err: error }, "a request failed in a way that isn't foreseen");
  return new AgentEnvError("internal", message);
}

function tooLarge(): AgentEnvError {
  return new AgentEnvError("limit_exceeded", "the request body is too large", {
    status: 413,
    retryable: false,
    hint: "the data plane takes 1 GiB, /mcp 32 MiB and everything else 1 MiB",
  });
}

function refuseRaw(response: ServerResponse, error: AgentEnvError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, body } = errorAnswer(error);
  response.writeHead(status, { "content-type": "application/json", connection: "close" }).end(JSON.stringify(body));
}

function sendError(reply: FastifyReply, error: AgentEnvError): FastifyReply {
  const { status, body } = errorAnswer(error);
  return reply.code(status).type("application/json").send(body);
}
