import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";
import type { CallToolResult, JsonObject, ToolDefinition } from "../protocol/tool.js";
import { withOwnSignal } from "./own-signal.js";

/** Longer than any deadline of a server of ours, so that its own answer comes first. */
const CALL_MS = 120_000;
/** How long a server may take to end a session. */
const CLOSE_MS = 5_000;

const Anything = z.looseObject({});

/** How an McpClient connects. */
export interface McpClientOptions {
  token?: string;
  /** Whom to call as. */
  role?: string;
  /** How long opening the session, and each request, may take in milliseconds. Default 120,000. */
  timeoutMs?: number;
  /** Lets go of opening the session. */
  signal?: AbortSignal;
}

/** An MCP session on an environment. Answers are not stripped of unknown keys. */
export class McpClient implements AsyncDisposable {
  private constructor(
    private readonly client: Client,
    private readonly transport: StreamableHTTPClientTransport,
    private readonly timeoutMs: number,
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
    const { timeoutMs = CALL_MS, signal } = options;
    const open = (own?: AbortSignal) =>
      client.connect(transport as Parameters<Client["connect"]>[0], {
        timeout: timeoutMs,
        ...(own === undefined ? {} : { signal: own }),
      });
    await (signal === undefined ? open() : withOwnSignal(signal, open));
    return new McpClient(client, transport, timeoutMs);
  }

  get instructions(): string | undefined {
    return this.client.getInstructions();
  }

  /** All of its tools. One that has none doesn't serve the list at all. */
  async tools(): Promise<ToolDefinition[]> {
    const tools: ToolDefinition[] = [];
    if (this.client.getServerCapabilities()?.tools === undefined) return tools;
    let cursor: unknown;
    do {
      const page = await this.request("tools/list", cursor === undefined ? {} : { cursor });
      tools.push(...(page.tools as ToolDefinition[]));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  /** Calls a tool. A refusal is a result with `isError`; throws an MCP error for a tool that there isn't. */
  async call(name: string, args: JsonObject, signal?: AbortSignal): Promise<CallToolResult> {
    return (await this.request("tools/call", { name, arguments: args }, signal)) as unknown as CallToolResult;
  }

  /** Any request of MCP. */
  async request(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    const send = (own?: AbortSignal) => {
      const options = { timeout: this.timeoutMs, ...(own === undefined ? {} : { signal: own }) };
      return this.client.request({ method, params }, Anything, options);
    };
    return await (signal === undefined ? send() : withOwnSignal(signal, send));
  }

  /** Ends the session at the server too, unless it doesn't answer. */
  async close(): Promise<void> {
    // Closing the client breaks off whatever the server leaves unanswered.
    const deadline = setTimeout(() => void this.client.close(), Math.min(this.timeoutMs, CLOSE_MS));
    await this.transport.terminateSession().catch(() => {});
    clearTimeout(deadline);
    await this.client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
