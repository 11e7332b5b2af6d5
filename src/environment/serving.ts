import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { SetupError } from "../errors.js";
import type { Environment } from "./environment.js";

/** How an environment is served; each has a default that is safe on one's own machine. */
export interface AppOptions {
  /** Default: nothing is logged. */
  log?: FastifyBaseLogger;
  /** Bearer tokens, `scope:token` each: `agent` reaches MCP alone, `framework` everything. Without any, everybody does. */
  tokens?: readonly string[];
  /** Names that the Host and Origin headers may give, beside localhost and addresses. */
  allowedHosts?: readonly string[];
  /** After this many milliseconds without a request or an open stream an MCP session is closed. Default 30 minutes. */
  sessionIdleMs?: number;
  /** How many MCP sessions may be open at once. Default 2,000. */
  maxSessions?: number;
}

/** How an environment is served on a port. */
export interface ServeOptions extends AppOptions {
  /** Default 127.0.0.1. Beyond loopback tokens are needed, or `insecure`. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Serves beyond loopback without tokens. */
  insecure?: boolean;
}

/** An environment that is being served. Closing it closes its sessions and the environment. */
export interface Serving extends AsyncDisposable {
  /** Such as `http://127.0.0.1:18765`; the card lies below it, and MCP at `/mcp`. */
  readonly url: string;
  readonly port: number;
  readonly app: FastifyInstance;
  /** Idempotent. */
  close(): Promise<void>;
}

/** What serves environments: the HTTP side, which comes after this folder in the stream of imports. */
export interface EnvironmentServer {
  app(environment: Environment, options: AppOptions): Promise<FastifyInstance>;
  serve(environment: Environment, options: ServeOptions): Promise<Serving>;
}

let provided: EnvironmentServer | undefined;

/** Says what `Environment.serve` and `Environment.app` call; done once, where the package is imported. */
export function provideServer(server: EnvironmentServer): void {
  provided = server;
}

export function environmentServer(): EnvironmentServer {
  if (provided === undefined) {
    throw new SetupError("nothing here can serve an environment", {
      hint: 'import Environment from "agent-env", not from a file inside it',
    });
  }
  return provided;
}
