import type { Application } from "../../src/environment/application.js";
import type { CallContext } from "../../src/environment/context.js";
import { RawJson } from "../../src/protocol/raw-json.js";
import type { CallToolResult, JsonObject } from "../../src/protocol/tool.js";

/** One rule that a served application breaks: what it does in the place of the real thing. */
export interface Lie {
  /** In the place of a tool's call. */
  call?(tool: string, args: JsonObject, call: CallContext, real: RealCall): Promise<CallToolResult | undefined>;
  /** In the place of an extension's method, named `computer-exec/run`. */
  extension?: Record<
    string,
    (params: JsonObject, real: (params: JsonObject) => Promise<JsonObject>) => Promise<JsonObject>
  >;
  /** Changes tools/list. */
  list?(tools: JsonObject[]): JsonObject[];
}

export type RealCall = (tool: string, args: JsonObject, call?: CallContext) => Promise<CallToolResult | undefined>;

/** Makes an application tell the lie that `lie()` answers at the time of each call; without one it is honest. */
export function lyingWith(application: Application, lie: () => Lie): void {
  const callTool = application.callTool.bind(application);
  application.callTool = async (name, args, call) => {
    const real: RealCall = async (tool, given, own = call) => {
      const result = await callTool(tool, given, own);
      return (result instanceof RawJson ? result.value() : result) as CallToolResult;
    };
    const own = lie().call;
    return own === undefined ? callTool(name, args, call) : own(name, args, call, real);
  };
  const listJson = application.toolListJson.bind(application);
  application.toolListJson = (role, behind) => {
    const own = lie().list;
    const json = listJson(role, behind);
    if (own === undefined) return json;
    const answer = JSON.parse(json) as { tools: JsonObject[] };
    return JSON.stringify({ ...answer, tools: own(answer.tools) });
  };
  for (const { uri, methods } of application.extensions) {
    const name = uri.replace(/^urn:agentenv:|\/v1$/g, "");
    for (const method of methods) {
      const handle = method.handle.bind(method);
      method.handle = async (params: never, context: never) => {
        const own = lie().extension?.[`${name}/${method.name}`];
        if (own === undefined) return handle(params, context);
        return own(params, async (given) => (await handle(given as never, context)) as JsonObject);
      };
    }
  }
}

/** The same result with other fields in what it says. */
export function saying(result: CallToolResult | undefined, fields: JsonObject): CallToolResult {
  if (result === undefined) throw new Error("the real call had no result");
  return { ...result, structuredContent: { ...result.structuredContent, ...fields } };
}

/** A refusal, as an honest server words it. */
export function refusing(code: string, applied = "no", more: JsonObject = {}): CallToolResult {
  return {
    isError: true,
    content: [{ type: "text", text: `${code}: no` }],
    structuredContent: { code, message: "no", retryable: false, applied, ...more },
  };
}
