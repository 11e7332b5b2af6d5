import { z } from "zod";
import type { ToolContext } from "../../src/environment/context.js";
import {
  addData,
  extension,
  getData,
  resetData,
  resource,
  serverInstructions,
  tool,
} from "../../src/environment/decorators.js";
import { Environment } from "../../src/environment/environment.js";
import { ForwardedTool } from "../../src/environment/served-tool.js";
import { AgentEnvError } from "../../src/errors.js";
import type { GetDataParams, Part } from "../../src/protocol/data-plane.js";
import { RawJson } from "../../src/protocol/raw-json.js";

/** A small environment with one of everything that the SDK serves. */
export class Shop extends Environment {
  readonly orders: string[] = [];
  /** Calls of `wait` that began. */
  waits = 0;
  /** Calls of `wait` that were let go by their signal. */
  aborted = 0;

  @tool({
    description: "Orders an item.",
    input: z.object({ item: z.string().min(1), count: z.int().min(1).default(1) }),
    output: z.object({ ordered: z.string(), count: z.int() }),
  })
  order({ item, count }: { item: string; count: number }, context: ToolContext) {
    this.orders.push(`${item}×${count} by ${context.role ?? "nobody"}`);
    return { ordered: item, count };
  }

  @tool({ description: "Waits until it is let go.", input: z.object({}) })
  async wait(_args: object, { signal, progress }: ToolContext) {
    this.waits += 1;
    progress(1, 2, "half way");
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    this.aborted += 1;
    return "let go";
  }

  @tool({ description: "Refuses.", input: z.object({}) })
  refuse(): never {
    throw new AgentEnvError("stale_frame", "too old", { hint: "take a new one" });
  }

  @tool({ description: "Breaks.", input: z.object({}), hiddenByDefault: true })
  broken(): never {
    throw new TypeError("a fault of the environment");
  }

  override forwardedTools(): ForwardedTool[] {
    const definition = { name: "far_echo", inputSchema: { type: "object" }, unknownKey: { kept: true } };
    return [
      new ForwardedTool(definition, async (args) =>
        args.raw === true
          ? new RawJson('{"content":[{"type":"odd","n":1.0}],"big":9007199254740993}')
          : { content: [{ type: "odd", unknown: 1 }], extra: args },
      ),
    ];
  }

  override toolListExtras() {
    return { schema_version: "1" };
  }

  @extension("urn:agentenv:stock/v1", {
    op: "get",
    method: "GET",
    description: "How many are left.",
    request: z.strictObject({ item: z.string(), at_least: z.int().optional() }),
  })
  stock({ item, at_least = 3 }: { item: string; at_least?: number | undefined }) {
    return { item, left: at_least };
  }

  @extension("urn:agentenv:stock/v1", { op: "fail", request: z.strictObject({}) })
  fail(): never {
    throw new Error("no stock at all");
  }

  @resource("shop://rules", { mimeType: "text/plain", description: "The rules." })
  rules(): string {
    return "pay first";
  }

  @serverInstructions
  welcome(): string {
    return "Be kind to the cashier.";
  }

  @resetData
  reset(): void {
    this.orders.length = 0;
  }

  @addData
  add(parts: Part[]): void {
    for (const part of parts) {
      if (part.kind !== "text") throw new Error("only text is taken");
      this.orders.push(part.text);
    }
  }

  @getData
  get(_params: GetDataParams): Part[] {
    return this.orders.map((text) => ({ kind: "text", text }));
  }
}
