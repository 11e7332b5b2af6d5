import type { ContentBlock, JsonObject } from "./tool.js";

/** One argument of a prompt. Its value is always text. Source: Model Context Protocol 2025-11-25, `PromptArgument`. */
export interface PromptArgument extends JsonObject {
  name: string;
  title?: string;
  description?: string;
  required?: boolean;
}

/** A prompt as `prompts/list` shows it. */
export interface PromptDefinition extends JsonObject {
  name: string;
  title?: string;
  description?: string;
  arguments?: PromptArgument[];
}

/** One message of a prompt. */
export interface PromptMessage extends JsonObject {
  role: "user" | "assistant";
  content: ContentBlock;
}

/** MCP's GetPromptResult. */
export interface PromptResult extends JsonObject {
  description?: string;
  messages: PromptMessage[];
}

/** How serious a log message is, from the least on. Source: Model Context Protocol 2025-11-25, "Logging" (RFC 5424). */
export const LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
/** How serious a log message is. */
export type LogLevel = (typeof LOG_LEVELS)[number];
