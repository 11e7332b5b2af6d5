import type { z } from "zod";
import { AgentEnvError, messageOf, SetupError } from "../errors.js";
import { RawJson, RawResult } from "../protocol/raw-json.js";
import {
  type CallToolResult,
  type ContentBlock,
  HIDDEN_BY_DEFAULT_META,
  type JsonObject,
  type ToolAnnotations,
  type ToolDefinition,
  type ToolResult,
} from "../protocol/tool.js";
import type { ToolContext } from "./context.js";
import { describeIssues, jsonSchemaOf, outputSchemaOf } from "./schema.js";
import type { ServedTool } from "./served-tool.js";

/** What a tool says of itself; `input` and `output` are what is listed and what is checked. */
export interface ToolSpec<I extends z.ZodObject, O extends z.ZodType = z.ZodType> {
  /** May hold `{environment_name}`. */
  name: string;
  title?: string;
  description: string;
  input: I;
  /** The shape of `structuredContent`, an object. What the tool answers is checked against it. */
  output?: O;
  annotations?: ToolAnnotations;
  hiddenByDefault?: boolean;
  meta?: JsonObject;
}

/**
 * What a handler may return: a whole result, content blocks, text, nothing, or any other JSON value, which is sent as
 * text and, where the tool has an output schema, as structured content.
 */
export type HandlerResult = unknown;

/** A tool as a value: its schema and its handler together. */
export function defineTool<I extends z.ZodObject, O extends z.ZodType>(
  spec: ToolSpec<I, O>,
  handler: (args: z.output<I>, context: ToolContext) => HandlerResult | Promise<HandlerResult>,
): ServedTool {
  return new OwnTool(spec, handler as (args: unknown, context: ToolContext) => unknown);
}

class OwnTool implements ServedTool {
  readonly definition: ToolDefinition;
  readonly hiddenByDefault: boolean;
  readonly forwarded = false;

  constructor(
    private readonly spec: ToolSpec<z.ZodObject>,
    private readonly handler: (args: unknown, context: ToolContext) => unknown,
  ) {
    this.hiddenByDefault = spec.hiddenByDefault ?? false;
    const meta = { ...spec.meta, ...(this.hiddenByDefault ? { [HIDDEN_BY_DEFAULT_META]: true } : {}) };
    this.definition = {
      name: spec.name,
      ...(spec.title === undefined ? {} : { title: spec.title }),
      description: spec.description,
      inputSchema: jsonSchemaOf(spec.input, "input"),
      ...(spec.output === undefined ? {} : { outputSchema: listedOutput(spec.name, spec.output) }),
      ...(spec.annotations === undefined ? {} : { annotations: spec.annotations }),
      ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
    };
  }

  async call(args: JsonObject, context: ToolContext): Promise<ToolResult> {
    const parsed = this.spec.input.safeParse(args);
    if (!parsed.success) {
      throw new AgentEnvError(
        "invalid_argument",
        `${this.spec.name}: ${describeIssues(parsed.error, Object.keys(this.spec.input.shape))}`,
        {
          hint: "the tool's inputSchema says what each argument takes",
        },
      );
    }
    const answer = await this.handler(parsed.data, context);
    const result = toResult(answer, this.spec.output !== undefined);
    if (this.spec.output !== undefined && isHeldToSchema(result)) {
      const checked = this.spec.output.safeParse(result.structuredContent);
      if (!checked.success) {
        throw new AgentEnvError(
          "internal",
          `${this.spec.name} answered something else than its output schema says: ${describeIssues(checked.error)}`,
        );
      }
    }
    return result;
  }
}

/** The schema as it is listed. Throws a SetupError for one of something else than an object, which no client would take. */
function listedOutput(tool: string, output: z.ZodType): JsonObject {
  const { type = "object" } = jsonSchemaOf(output, "output");
  if (type === "object") return outputSchemaOf(output);
  throw new SetupError(`the tool "${tool}" has an output of type ${String(type)}, which structured content can't be`, {
    hint: "put it in an object: z.object({ … })",
  });
}

/** A failure has another shape, and what another server answers is its own business. */
function isHeldToSchema(result: ToolResult): result is CallToolResult | RawResult {
  return result instanceof RawJson ? result instanceof RawResult : result.isError !== true;
}

function toResult(answer: unknown, structured: boolean): ToolResult {
  if (answer instanceof RawJson) return answer;
  if (answer === undefined || answer === null) return { content: [] };
  if (typeof answer === "string") return { content: [{ type: "text", text: answer }] };
  if (isBlockList(answer)) return { content: answer };
  if (typeof answer === "object" && "content" in answer && Array.isArray(answer.content)) {
    return answer as CallToolResult;
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(answer);
  } catch (thrown) {
    throw new AgentEnvError("internal", `the answer can't be written as JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  return {
    content: [{ type: "text", text: text ?? "" }],
    ...(structured ? { structuredContent: answer as JsonObject } : {}),
  };
}

function isBlockList(answer: unknown): answer is ContentBlock[] {
  return (
    Array.isArray(answer) &&
    answer.length > 0 &&
    answer.every((block) => typeof block === "object" && block !== null && typeof block.type === "string")
  );
}
