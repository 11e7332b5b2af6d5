import type { DataOperation } from "../protocol/card.js";
import type { JsonObject, ToolResult } from "../protocol/tool.js";
import type { Application } from "./application.js";
import type { ToolContext } from "./context.js";
import type { ServedExtension } from "./extension.js";
import type { ServedResource } from "./resource.js";
import type { ForwardedTool, ServedTool } from "./served-tool.js";

/** Why an environment isn't ready, or that it is. */
export interface Readiness {
  ready: boolean;
  reasons: string[];
}

/**
 * The base of every environment. A subclass decorates methods (`@tool`, `@extension`, `@resource`, …) or overrides the
 * hooks below, which are asked when the environment is built.
 */
export abstract class Environment {
  /** The card's name, unless the environment variable ENVIRONMENT_NAME gives another; default: the class's name. */
  get environmentName(): string {
    return this.constructor.name;
  }

  /** The version that `initialize` reports. */
  get environmentVersion(): string {
    return "0.0.0";
  }

  /** Tools as values, beside the decorated methods. */
  tools(): ServedTool[] {
    return [];
  }

  /** Another server's tools. */
  forwardedTools(): ForwardedTool[] | Promise<ForwardedTool[]> {
    return [];
  }

  /** Keys that `tools/list` carries beside `tools`. */
  toolListExtras(): JsonObject {
    return {};
  }

  /** Extensions as values, beside the decorated methods. */
  extensions(): ServedExtension[] {
    return [];
  }

  /** Features of a decorated extension, beside its methods on the card. */
  extensionParams(_uri: string): JsonObject {
    return {};
  }

  /** Resources as values, beside the decorated methods. */
  resources(): ServedResource[] {
    return [];
  }

  /** The text that `initialize` carries. */
  instructions(): string | undefined {
    return undefined;
  }

  /** Which of the tools are served. */
  servedTools(tools: ServedTool[]): ServedTool[] {
    return tools;
  }

  servedExtensions(extensions: ServedExtension[]): ServedExtension[] {
    return extensions;
  }

  servedOperations(operations: DataOperation[]): DataOperation[] {
    return operations;
  }

  /** Called once, when all that it serves is collected and before anything is served: to change descriptions later. */
  mounted(_application: Application): void {}

  /** Called before every tool call that the caller is allowed; what it returns is the answer, undefined lets the call go on. */
  onToolCall(_context: ToolContext): ToolResult | undefined | Promise<ToolResult | undefined> {
    return undefined;
  }

  /** Answers a call of a tool that isn't served; undefined leaves it to MCP's own error. */
  onUnknownTool(_context: ToolContext): ToolResult | undefined | Promise<ToolResult | undefined> {
    return undefined;
  }

  /** What `/readyz` answers. */
  async readiness(): Promise<Readiness> {
    return { ready: true, reasons: [] };
  }

  /** Lets go of what the environment holds. Idempotent. */
  async close(): Promise<void> {}
}
