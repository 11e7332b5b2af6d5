import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { pino } from "pino";
import { Application } from "../../src/environment/application.js";
import type { Environment } from "../../src/environment/environment.js";
import type { ToolNarrowing } from "../../src/environment/tool-narrowing.js";
import { listen } from "../../src/http/listen.js";
import { buildHttp, type HttpOptions } from "../../src/http/server.js";
import { McpEndpoint, type McpOptions } from "../../src/mcp/endpoint.js";

export interface Serving extends AsyncDisposable {
  readonly url: string;
  readonly application: Application;
  readonly mcp: McpEndpoint;
  /** A connected client of the official SDK; closed with the server. */
  client(headers?: Record<string, string>, capabilities?: object): Promise<Client>;
}

/** Serves an environment on a free port, as `agentenv up` does. */
export async function serve(
  environment: Environment,
  options: McpOptions & Partial<HttpOptions> & { tools?: ToolNarrowing } = {},
): Promise<Serving> {
  const log = pino({ level: "silent" });
  const application = await Application.build(environment, log, options.tools);
  const mcp = new McpEndpoint(application, options);
  const app = buildHttp(application, mcp, { log, finished: true, ...options });
  const url = `http://127.0.0.1:${await listen(app, "127.0.0.1", 0)}`;
  const clients: Client[] = [];
  return {
    url,
    application,
    mcp,
    async client(headers = {}, capabilities = {}) {
      const client = new Client({ name: "test", version: "1" }, { capabilities });
      const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
      await client.connect(transport as Parameters<Client["connect"]>[0]);
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.close();
      await mcp.close();
      await app.close();
      await environment.close();
    },
  };
}
