import { z } from "zod";
import type { RawJson } from "./raw-json.js";

/** A JSON object as it travels; keys that we don't know are kept. */
export type JsonObject = { [key: string]: unknown };

/** MCP's hints about a tool. Sources: Model Context Protocol 2025-06-18, `ToolAnnotations`. */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** A tool as `tools/list` shows it. A forwarded tool may carry keys beside these; they are served as they are. */
export interface ToolDefinition extends JsonObject {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations?: ToolAnnotations;
  _meta?: JsonObject;
}

/** Text in a tool's answer. */
export interface TextContent {
  type: "text";
  text: string;
}

/** A picture in a tool's answer. */
export interface ImageContent {
  type: "image";
  /** Base64. */
  data: string;
  mimeType: string;
}

/** A block of a tool's answer; block types that we don't make ourselves pass through. */
export type ContentBlock = TextContent | ImageContent | (JsonObject & { type: string });

/** MCP's CallToolResult. */
export interface CallToolResult extends JsonObject {
  content: ContentBlock[];
  structuredContent?: JsonObject;
  isError?: boolean;
  _meta?: JsonObject;
}

/** What a tool answers: a result, or the JSON text of one. */
export type ToolResult = CallToolResult | RawJson;

/** `tools/list` marks a tool that no caller sees until a rule names it with this key in its `_meta`. */
export const HIDDEN_BY_DEFAULT_META = "agentenv.io/hiddenByDefault";
/** The `_meta` keys under which a gateway says who is calling. */
export const ROLE_META = "agentenv.io/role";
export const SESSION_META = "agentenv.io/session";
/** The header that says the role of a caller who comes without a gateway. */
export const ROLE_HEADER = "agentenv-role";

/** `urn:agentenv:disable-tool/v1` and `enable-tool/v1`: which tools to hide from a role, or to show it again. */
export const ToolAccessRequest = z.strictObject({
  role: z.string().min(1),
  tools: z.union([z.array(z.string()), z.literal("*")]),
});
export type ToolAccessRequest = z.infer<typeof ToolAccessRequest>;
