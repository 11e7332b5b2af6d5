import { z } from "zod";
import type { ExtensionContext, ExtensionMethod } from "../environment/extension.js";
import { describeIssues } from "../environment/schema.js";
import { AgentEnvError, messageOf } from "../errors.js";
import { CALL_BOUNDS, jsonProblem } from "../protocol/json-bounds.js";

/** An answer of an extension: the status and the JSON body. */
export interface ExtensionAnswer {
  status: number;
  body: unknown;
}

/** Calls an extension's method with a request's params and makes its answer; never throws. */
export async function callExtension(
  method: ExtensionMethod,
  params: () => unknown,
  context: ExtensionContext,
  failed: (thrown: unknown) => void,
): Promise<ExtensionAnswer> {
  try {
    const handle = method.handle as (params: unknown, context: ExtensionContext) => unknown;
    const answer = await handle.call(method, check(method, params()), context);
    return { status: 200, body: answer ?? {} };
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return errorAnswer(thrown);
    failed(thrown);
    return errorAnswer(new AgentEnvError("extension_failed", messageOf(thrown)));
  }
}

/** The answer of a call that was refused or failed. */
export function errorAnswer(error: AgentEnvError): ExtensionAnswer {
  return { status: error.status, body: { ok: false, error: error.fields() } };
}

/** The params of a POST: its body as JSON, whatever its content type; an empty one is `{}`. */
export function bodyParams(body: Buffer | undefined): unknown {
  const problem = body === undefined ? undefined : jsonProblem(body, CALL_BOUNDS);
  if (problem !== undefined) throw new AgentEnvError("invalid_params", `the request body can't be taken: ${problem}`);
  const text = body?.toString("utf8").trim() ?? "";
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new AgentEnvError("invalid_params", "the request body must be JSON", { cause: thrown });
  }
}

/** The params of a GET: a query's values are text, and those that the request takes as something else are read as JSON. */
export function queryParams(query: Readonly<Record<string, unknown>>, request: z.ZodObject): unknown {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const schema = request.shape[name];
      if (typeof value !== "string" || !(schema instanceof z.ZodType) || schema.safeParse(value).success) {
        return [name, value];
      }
      try {
        return [name, JSON.parse(value)];
      } catch {
        return [name, value];
      }
    }),
  );
}

function check(method: ExtensionMethod, params: unknown): unknown {
  if (typeof params !== "object" || params === null || Array.isArray(params)) {
    throw new AgentEnvError("invalid_params", "the params must be a JSON object");
  }
  const known = Object.keys(method.request.shape);
  const unknown = Object.keys(params).filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new AgentEnvError("invalid_params", `unknown parameter: ${unknown.join(", ")}`, {
      hint: known.length > 0 ? `it takes ${known.join(", ")}` : "it takes none",
    });
  }
  const parsed = method.request.safeParse(params);
  if (!parsed.success) throw new AgentEnvError("invalid_params", describeIssues(parsed.error));
  return parsed.data;
}
