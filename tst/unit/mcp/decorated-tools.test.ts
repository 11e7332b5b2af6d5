import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ToolContext } from "../../../src/environment/context.js";
import { extension, getData, resetData, tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { EnvironmentClient } from "../../../src/index.js";
import type { Part } from "../../../src/protocol/data-plane.js";
import type { CallToolResult } from "../../../src/protocol/tool.js";
import { type Serving, serve } from "../../fakes/serving.js";

const Line = z.object({ item: z.string().min(1), count: z.int().min(1) });

class Till extends Environment {
  readonly seen: ToolContext[] = [];

  @tool({
    name: "{environment_name}_pay",
    title: "Pay",
    description: "Pays for some lines.",
    input: z.strictObject({ lines: z.array(Line).min(1), tip: z.number().default(0) }),
    output: z.object({ paid: z.number(), receipt: z.string().optional() }),
    annotations: { destructiveHint: true, idempotentHint: false },
    meta: { "example.com/counter": 3 },
  })
  pay({ lines, tip }: { lines: z.infer<typeof Line>[]; tip: number }, context: ToolContext) {
    this.seen.push(context);
    return { paid: lines.length + tip };
  }

  @tool({
    description: "Answers as it is told to.",
    input: z.object({ how: z.string() }),
    output: z.object({ n: z.int() }),
  })
  checked({ how }: { how: string }): unknown {
    const answers: Record<string, unknown> = {
      right: { n: 1 },
      more: { n: 1, more: true },
      wrong: { n: "one" },
      none: undefined,
      refused: { content: [], isError: true },
      whole: { content: [{ type: "text", text: "two" }], structuredContent: { n: 2 }, _meta: { kept: 1.5 }, odd: [] },
    };
    return answers[how];
  }

  @tool({ description: "Answers anything.", input: z.object({ how: z.string() }) })
  plain({ how }: { how: string }): unknown {
    return { text: "words", list: [1, 2], nothing: null, number: 7, object: { a: 1 } }[how];
  }

  @tool({ description: "Not for everybody.", input: z.object({}), hiddenByDefault: true, meta: { own: true } })
  audit() {
    return "audited";
  }

  @tool({ description: "Not served.", input: z.object({}) })
  dropped() {
    return "";
  }

  @extension("urn:agentenv:drawer/v1", { op: "open", description: "Opens the drawer." })
  open() {
    return { open: true };
  }

  @extension("urn:agentenv:safe/v1", { op: "open" })
  safe() {
    return {};
  }

  @resetData
  reset(): void {}

  @getData
  get(): Part[] {
    return [];
  }

  override servedTools(tools: Parameters<Environment["servedTools"]>[0]) {
    return tools.filter(({ definition }) => definition.name !== "dropped");
  }

  override servedExtensions(extensions: Parameters<Environment["servedExtensions"]>[0]) {
    return extensions.filter(({ uri }) => uri !== "urn:agentenv:safe/v1");
  }

  override servedOperations(operations: Parameters<Environment["servedOperations"]>[0]) {
    return operations.filter((operation) => operation !== "data/reset");
  }

  override onToolCall({ tool: name, arguments: args }: ToolContext): CallToolResult | undefined {
    return name === "plain" && args.how === "instead"
      ? { content: [{ type: "text", text: "answered before" }] }
      : undefined;
  }
}

let serving: Serving | undefined;
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  serving = undefined;
});

async function open() {
  const till = new Till();
  serving = await serve(till);
  const client = await serving.client();
  const call = async (name: string, args: object) =>
    (await client.callTool({ name, arguments: { ...args } })) as unknown as CallToolResult;
  return { till, client, call, url: serving.url };
}

describe("a decorated tool", () => {
  it("is listed with its name, title, schemas of JSON Schema 2020-12, annotations and meta, on the card as well", async () => {
    const { client, url } = await open();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["Till_pay", "checked", "plain"]);
    expect(tools[0]).toEqual({
      name: "Till_pay",
      title: "Pay",
      description: "Pays for some lines.",
      inputSchema: {
        type: "object",
        properties: {
          lines: {
            type: "array",
            minItems: 1,
            items: {
              type: "object",
              properties: {
                item: { type: "string", minLength: 1 },
                count: { type: "integer", minimum: 1 },
              },
              required: ["item", "count"],
            },
          },
          tip: { type: "number", default: 0 },
        },
        required: ["lines"],
        additionalProperties: false,
      },
      outputSchema: {
        type: "object",
        anyOf: [
          {
            type: "object",
            properties: { paid: { type: "number" }, receipt: { type: "string" } },
            required: ["paid"],
          },
          expect.objectContaining({ required: ["code", "message", "retryable", "applied"] }),
        ],
      },
      annotations: { destructiveHint: true, idempotentHint: false },
      _meta: { "example.com/counter": 3 },
    });
    const card = await new EnvironmentClient(url).card();
    expect(card.capabilities.tools?.map(({ name }) => name)).toEqual(["Till_pay", "checked", "plain", "audit"]);
    expect(card.capabilities.tools?.[0]?.inputSchema).toEqual(tools[0]?.inputSchema);
  });

  it("refuses arguments with the path of each that is wrong and what was expected there", async () => {
    const { call } = await open();
    const refused = await call("Till_pay", {
      lines: [
        { item: "tea", count: 1 },
        { item: 5, count: 0.5 },
      ],
      tipp: 1,
    });
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "invalid_argument", applied: "no" } });
    const { message } = refused.structuredContent as { message: string };
    expect(message).toMatch(/^Till_pay: /);
    expect(message).toMatch(/lines\[1\]\.item: [^;]*expected string/);
    expect(message).toMatch(/lines\[1\]\.count: [^;]*expected int/);
    expect(message).toMatch(/"tipp"; it takes lines, tip$/);
    expect((await call("Till_pay", { lines: [] })).structuredContent?.message).toMatch(/lines: .*1/);
  });

  it("gets its arguments with defaults, and a context with those that arrived, its name and an id of the call", async () => {
    const { till, call } = await open();
    const args = { lines: [{ item: "tea", count: 1 }] };
    expect((await call("Till_pay", args)).structuredContent).toEqual({ paid: 1 });
    await call("Till_pay", { ...args, tip: 2 });
    const [first, second] = till.seen as [ToolContext, ToolContext];
    expect([first.tool, first.arguments, first.role]).toEqual(["Till_pay", args, undefined]);
    expect(first.callId).toMatch(/\S/);
    expect(second.callId).not.toBe(first.callId);
    expect(second.caller).toBe(first.caller);
    expect(first.signal.aborted).toBe(false);
  });

  it("answers what fits its output schema, and anything else is a fault that names the place; a refusal isn't checked", async () => {
    const { call } = await open();
    // A client that has listed the tools checks each answer against the schema that is listed.
    const checking = await serving?.client();
    await checking?.listTools();
    const answer = (how: string) => checking?.callTool({ name: "checked", arguments: { how } });
    expect((await answer("right"))?.structuredContent).toEqual({ n: 1 });
    expect((await answer("more"))?.structuredContent).toEqual({ n: 1, more: true });
    expect(await answer("wrong")).toMatchObject({ isError: true, structuredContent: { code: "internal" } });
    expect(await checking?.callTool({ name: "checked", arguments: {} })).toMatchObject({
      isError: true,
      structuredContent: { code: "invalid_argument" },
    });
    for (const how of ["wrong", "none"]) {
      const { isError, structuredContent } = await call("checked", { how });
      expect([isError, structuredContent]).toMatchObject([true, { code: "internal", applied: "unknown" }]);
      expect(structuredContent?.message).toMatch(/^checked answered something else than its output schema says: /);
    }
    expect((await call("checked", { how: "wrong" })).structuredContent?.message).toMatch(/ n: .*expected /);
    expect(await call("checked", { how: "refused" })).toEqual({ content: [], isError: true });
  });

  it("may answer text, a value, nothing, or a whole result, which goes out as it is", async () => {
    const { call } = await open();
    expect(await call("checked", { how: "whole" })).toEqual({
      content: [{ type: "text", text: "two" }],
      structuredContent: { n: 2 },
      _meta: { kept: 1.5 },
      odd: [],
    });
    const texts = async (how: string) => (await call("plain", { how })).content;
    expect(await texts("text")).toEqual([{ type: "text", text: "words" }]);
    expect(await texts("list")).toEqual([{ type: "text", text: "[1,2]" }]);
    expect(await texts("number")).toEqual([{ type: "text", text: "7" }]);
    expect(await texts("object")).toEqual([{ type: "text", text: '{"a":1}' }]);
    expect(await texts("nothing")).toEqual([]);
    expect(await texts("missing")).toEqual([]);
  });

  it("that is hidden by default is listed, marked, to a role once a rule names it", async () => {
    const { client, call, url } = await open();
    expect((await call("audit", {})).structuredContent).toMatchObject({ code: "permission_denied" });
    await fetch(`${url}/tools/enable`, { method: "POST", body: JSON.stringify({ role: "*", tools: ["audit"] }) });
    expect((await client.listTools()).tools.at(-1)).toMatchObject({
      name: "audit",
      _meta: { own: true, "agentenv.io/hiddenByDefault": true },
    });
    expect((await call("audit", {})).content).toEqual([{ type: "text", text: "audited" }]);
  });
});

describe("what an environment's hooks leave of its tools, extensions and operations", () => {
  it("is on the card, and the rest is answered as what there isn't", async () => {
    const { client, call, url } = await open();
    const { capabilities } = await new EnvironmentClient(url).card();
    expect(capabilities.extensions?.map(({ uri }) => uri)).toContain("urn:agentenv:drawer/v1");
    expect(capabilities.extensions?.map(({ uri }) => uri)).not.toContain("urn:agentenv:safe/v1");
    expect(capabilities.operations).toEqual(["data/get"]);
    expect((await fetch(`${url}/agentenv/ext/drawer/open`, { method: "POST" })).status).toBe(200);
    expect((await fetch(`${url}/agentenv/ext/safe/open`, { method: "POST" })).status).toBe(404);
    await expect(new EnvironmentClient(url).resetData()).rejects.toMatchObject({ applied: "no" });
    await expect(client.callTool({ name: "dropped", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    expect((await call("plain", { how: "instead" })).content).toEqual([{ type: "text", text: "answered before" }]);
  });
});

describe("a tool whose output is no object", () => {
  it("is refused when the environment is built, since MCP's structured content is one; several forms of one may be", async () => {
    class Names extends Environment {
      @tool({ description: "Names.", input: z.object({}), output: z.array(z.string()) })
      names() {
        return ["tea"];
      }
    }
    class Either extends Environment {
      @tool({
        description: "This or that.",
        input: z.object({}),
        output: z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("a"), a: z.int() }),
          z.object({ kind: z.literal("b"), b: z.int() }),
        ]),
      })
      either() {
        return { kind: "b", b: 1 };
      }
    }
    await expect(serve(new Names())).rejects.toMatchObject({
      name: "SetupError",
      message: 'the tool "names" has an output of type array, which structured content can\'t be',
    });
    serving = await serve(new Either());
    const client = await serving.client();
    await client.listTools();
    expect((await client.callTool({ name: "either", arguments: {} })).structuredContent).toEqual({ kind: "b", b: 1 });
  });
});
