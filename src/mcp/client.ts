import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";
import type { CallToolResult, JsonObject, ToolDefinition } from "../protocol/tool.js";

/** Longer than any deadline of a server of ours, so that its own answer comes first. */
const CALL_MS = 120_000;

const Anything = z.looseObject({});

export interface McpClientOptions {
  token?: string;
  role?: string;
}

/** An MCP session on an environment, as the command line and the probe use it. Answers are not stripped of unknown keys. */
export class McpClient implements AsyncDisposable {
  private constructor(
    private readonly client: Client,
    private readonly transport: StreamableHTTPClientTransport,
  ) {}

  /** Opens a session at `url`, an environment's base address. */
  static async connect(url: string, options: McpClientOptions = {}): Promise<McpClient> {
    const transport = new StreamableHTTPClientTransport(new URL("/mcp", url), {
      requestInit: {
        headers: {
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
          ...(options.role === undefined ? {} : { "agentenv-role": options.role }),
        },
      },
    });
    const client = new Client({ name: "agentenv", version: "1" });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    return new McpClient(client, transport);
  }

  get instructions(): string | undefined {
    return this.client.getInstructions();
  }

  async tools(): Promise<ToolDefinition[]> {
    const list = await this.client.request({ method: "tools/list", params: {} }, Anything);
    return list.tools as ToolDefinition[];
  }

  async call(name: string, args: JsonObject, signal?: AbortSignal): Promise<CallToolResult> {
    const options = { timeout: CALL_MS, ...(signal === undefined ? {} : { signal }) };
    const params = { name, arguments: args };
    return (await this.client.request(
      { method: "tools/call", params },
      Anything,
      options,
    )) as unknown as CallToolResult;
  }

  /** Ends the session at the server too. */
  async close(): Promise<void> {
    await this.transport.terminateSession().catch(() => {});
    await this.client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
