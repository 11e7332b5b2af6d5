import type { McpClient } from "../mcp/client.js";
import { POINT_TOOLS, ScreenshotResult } from "../protocol/computer.js";
import type { CallToolResult, JsonObject, ToolDefinition } from "../protocol/tool.js";
import { expectThat, Finding } from "./check.js";
import { Picture } from "./picture.js";

/** How long ending a session may take, in milliseconds. */
const CLOSE_MS = 5_000;

const pointTools: readonly string[] = POINT_TOOLS;

/** A frame and its image. */
export interface Shot extends ScreenshotResult {
  readonly picture: Picture;
}

/** One MCP session of the probe on the driver: a caller. Its calls are let go with the check's signal. */
export class ProbeSession {
  constructor(
    private readonly client: McpClient,
    private readonly signal: AbortSignal,
  ) {}

  /** Any request of MCP. */
  request(method: string, params: JsonObject): Promise<JsonObject> {
    return this.client.request(method, params, this.signal);
  }

  tools(): Promise<ToolDefinition[]> {
    return this.client.tools();
  }

  /** Calls a tool; points are in frame pixels unless `args` says otherwise, whatever the driver's default is. */
  call(tool: string, args: JsonObject = {}, signal: AbortSignal = this.signal): Promise<CallToolResult> {
    return this.callAsItIs(tool, pointTools.includes(tool) ? { space: "frame", ...args } : args, signal);
  }

  callAsItIs(tool: string, args: JsonObject, signal: AbortSignal = this.signal): Promise<CallToolResult> {
    return this.client.call(tool, args, signal);
  }

  /** The structured content of a call that has to succeed. */
  async ok(tool: string, args: JsonObject = {}): Promise<JsonObject> {
    return contentOf(tool, args, await this.call(tool, args));
  }

  /** Takes a screenshot, or a crop with `region`. */
  async shot(args: JsonObject = {}): Promise<Shot> {
    const result = await this.call("computer_screenshot", args);
    const content = contentOf("computer_screenshot", args, result);
    const parsed = ScreenshotResult.safeParse(content);
    expectThat(parsed.success, `computer_screenshot answered no frame: ${JSON.stringify(content)}`);
    return { ...parsed.data, picture: await Picture.of(result) };
  }

  /** A call that has to be refused with this code and nothing applied. Answers the refusal. */
  async refused(tool: string, args: JsonObject, code: string): Promise<JsonObject> {
    return checkRefusal(await this.call(tool, args), code);
  }

  async close(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, CLOSE_MS);
    try {
      await Promise.race([this.client.close().catch(() => {}), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function contentOf(tool: string, args: JsonObject, result: CallToolResult): JsonObject {
  if (!result.isError) return result.structuredContent ?? {};
  throw new Finding(`${tool} ${JSON.stringify(args)} failed: ${textOf(result)}`);
}

/** Throws a Finding unless a result is a refusal with this code, in the protocol's shape, that says nothing was applied. */
export function checkRefusal(result: CallToolResult, code: string): JsonObject {
  const said = result.structuredContent ?? {};
  expectThat(result.isError === true, `it was not refused: ${String(said.summary ?? textOf(result))}`);
  expectThat(said.code === code, `it was refused ${said.code ?? "without a code"}, not ${code}: ${textOf(result)}`);
  expectThat(said.applied === "no", `it was refused with applied ${JSON.stringify(said.applied)}, not "no"`);
  expectThat(
    typeof said.message === "string" && typeof said.retryable === "boolean",
    `the refusal has no message or no retryable: ${JSON.stringify(said)}`,
  );
  return said;
}

/** The text blocks of an answer. */
export function textOf({ content }: CallToolResult): string {
  return content.flatMap((block) => (block.type === "text" ? [String(block.text)] : [])).join("\n");
}
