import { z } from "zod";
import type { JsonObject } from "../protocol/tool.js";

/**
 * A zod schema as JSON Schema 2020-12, as it goes into a card or a tool's listing. That dialect is MCP's default, so
 * `$schema` is left out, unless the schema names it itself (`.meta({ $schema: … })`).
 */
export function jsonSchemaOf(schema: z.ZodType, io: "input" | "output"): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    target: "draft-2020-12",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // The bounds that zod gives every integer say something about numbers here, and nothing about the value.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // zod lists an output of `z.object` as one without other members, which it doesn't check.
      if (io === "output" && isOpenObject(zodSchema)) delete jsonSchema.additionalProperties;
    },
  });
  const named = schema.meta()?.$schema;
  return (named === undefined ? rest : { $schema: named, ...rest }) as JsonObject;
}

/** What a refusal or a failure says of itself, in the place of a tool's own structured content. Its shape is ErrorFields. */
const REFUSAL = {
  type: "object",
  description: "With isError: why the call was refused or failed, and whether it was applied all the same.",
  properties: {
    code: { type: "string" },
    message: { type: "string" },
    retryable: { type: "boolean" },
    applied: { enum: ["yes", "no", "unknown"] },
    hint: { type: "string" },
  },
  required: ["code", "message", "retryable", "applied"],
} as const satisfies JsonObject;

/**
 * What a tool's `structuredContent` may be, as it is listed. Refusals carry one too, and clients hold whatever comes to the
 * listed schema: one that knew of answers alone would have them throw a refusal away, code and hint and all.
 */
export function outputSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema, $defs, ...answer } = jsonSchemaOf(schema, "output");
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: "object",
    anyOf: [answer, REFUSAL],
    ...($defs === undefined ? {} : { $defs }),
  };
}

function isOpenObject(schema: z.core.$ZodType): boolean {
  const { def } = (schema as z.core.$ZodObject)._zod;
  return def.type === "object" && def.catchall === undefined;
}

/** Each issue as `path: what was expected`, in one line. `known` are the names that there are at the top. */
export function describeIssues(error: z.ZodError, known: readonly string[] = []): string {
  return error.issues
    .slice(0, 8)
    .map((issue) => {
      const unknown = issue.code === "unrecognized_keys" && issue.path.length === 0 && known.length > 0;
      return unknown ? `${issue.message}; it takes ${known.join(", ")}` : describeIssue(issue);
    })
    .join("; ");
}

/** One issue; of a value that may have several forms, what each of them expected. */
function describeIssue(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): string {
  const path = [...above, ...issue.path];
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    const forms = issue.errors.map((each) => each.map((inner) => describeIssue(inner, path)).join(" and "));
    return [...new Set(forms)].slice(0, 8).join(", or ");
  }
  const message =
    issue.code === "invalid_key" || issue.code === "invalid_element"
      ? `${issue.message}: ${issue.issues.map((inner) => describeIssue(inner)).join(" and ")}`
      : issue.message;
  return path.length > 0 ? `${pathOf(path)}: ${message}` : message;
}

function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : `${index > 0 ? "." : ""}${String(part)}`))
    .join("");
}
