import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { Application } from "../environment/application.js";
import type { Environment } from "../environment/environment.js";
import type { AppOptions, ServeOptions, Serving } from "../environment/serving.js";
import { SetupError } from "../errors.js";
import { McpEndpoint } from "../mcp/endpoint.js";
import { listen } from "./listen.js";
import { buildHttp } from "./server.js";
import { Tokens } from "./tokens.js";

/**
 * Builds an environment and the app that serves it. Closing the app ends the MCP sessions and closes the environment.
 * Throws a SetupError for what can't be served.
 */
export function buildApp(environment: Environment, options: AppOptions = {}): Promise<FastifyInstance> {
  return build(environment, options, false);
}

/** `finished`: nobody gets the app to add to it before it listens. */
async function build(environment: Environment, options: AppOptions, finished: boolean): Promise<FastifyInstance> {
  const { log = pino({ level: "silent" }), tokens = [], allowedHosts = [], sessionIdleMs, maxSessions } = options;
  const application = await Application.build(environment, log);
  const mcp = new McpEndpoint(application, {
    ...(sessionIdleMs === undefined ? {} : { idleMs: sessionIdleMs }),
    ...(maxSessions === undefined ? {} : { maxSessions }),
  });
  const app = buildHttp(application, mcp, {
    log,
    allowedHosts,
    finished,
    ...(tokens.length === 0 ? {} : { tokens: Tokens.parse(tokens.join("\n"), "tokens") }),
  });
  // Before the server closes, since an open event stream would keep it open.
  app.addHook("preClose", () => mcp.close());
  app.addHook("onClose", () => environment.close());
  return app;
}

/** Builds an environment and listens. Throws a SetupError for a port that can't be had, or an address that isn't safe. */
export async function serve(environment: Environment, options: ServeOptions = {}): Promise<Serving> {
  const { host = "127.0.0.1", port = 0, tokens = [], insecure = false } = options;
  if (!isLoopback(host) && tokens.length === 0 && !insecure) {
    throw new SetupError(`${host} can be reached from other machines, and no token is asked for`, {
      hint: 'give tokens, such as tokens: ["framework:SECRET"], or insecure: true',
    });
  }
  const app = await build(environment, options, true);
  let bound: number;
  try {
    bound = await listen(app, host, port);
  } catch (thrown) {
    await app.close();
    throw thrown;
  }
  return {
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    port: bound,
    app,
    close: () => app.close(),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\./.test(host);
}
