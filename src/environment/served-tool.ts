import { withMember } from "../protocol/json-text.js";
import type { JsonObject, ToolDefinition, ToolResult } from "../protocol/tool.js";
import type { ToolContext } from "./context.js";
import type { ForwardedServer } from "./forwarded-server.js";

/** A tool as the environment serves it, whichever way it was made. */
export interface ServedTool {
  readonly definition: ToolDefinition;
  /** The definition's JSON text as another server wrote it, served as it is. */
  readonly definitionText?: string;
  /** Hidden from every caller until a rule of tool access names it. */
  readonly hiddenByDefault: boolean;
  /** True for another server's tool. */
  readonly forwarded: boolean;
  call(args: JsonObject, context: ToolContext): Promise<ToolResult>;
}

/**
 * A tool of another server: listed exactly as that server lists it, with its own schemas and keys that we don't know,
 * called with its arguments untouched, and answered with that server's CallToolResult as it is.
 */
export class ForwardedTool implements ServedTool {
  readonly forwarded = true;

  constructor(
    readonly definition: ToolDefinition,
    private readonly forward: (args: JsonObject, context: ToolContext) => Promise<ToolResult>,
    readonly definitionText: string = JSON.stringify(definition),
    readonly hiddenByDefault = false,
    /** The server whose tool it is, where `forward` does nothing but send calls on as the client writes them. */
    private readonly server?: ForwardedServer,
  ) {}

  call(args: JsonObject, context: ToolContext): Promise<ToolResult> {
    return this.forward(args, context);
  }

  /** The server that gets this tool's calls as they come; undefined where `call` does something else with them. */
  get passesOnTo(): ForwardedServer | undefined {
    return this.call === ForwardedTool.prototype.call ? this.server : undefined;
  }
}

/** A definition's text with another description, the rest of it as it was written. */
export function describedText(definitionText: string, description: string): string {
  return withMember(definitionText, "description", JSON.stringify(description));
}

/** The tool with another description. */
export function described(tool: ServedTool, description: string): ServedTool {
  const { forwarded, hiddenByDefault, definitionText } = tool;
  return {
    definition: { ...tool.definition, description },
    ...(definitionText === undefined ? {} : { definitionText: describedText(definitionText, description) }),
    forwarded,
    hiddenByDefault,
    call: (args, context) => tool.call(args, context),
  };
}
