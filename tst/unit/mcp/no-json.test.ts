import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { prompt, resource, tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { type Serving, serve } from "../../fakes/serving.js";

/** Answers what JSON has no text for. */
class NoJson extends Environment {
  @tool({ description: "Answers a whole result that is no JSON.", input: z.object({}) })
  whole() {
    return { content: [], structuredContent: { n: 1n } };
  }

  @resource("odd://thrown", { name: "thrown" })
  thrown(): string {
    throw Object.assign(new Error("a fault with data"), { code: -32050, data: { n: 1n } });
  }

  @prompt({ name: "odd", description: "Throws what is no error." })
  odd(): string {
    throw null;
  }
}

let serving: Serving | undefined;
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  serving = undefined;
});

describe("what is no JSON", () => {
  it("is answered as an error, in a result as in an error's data, and the session goes on", async () => {
    serving = await serve(new NoJson());
    const client = await serving.client();
    await expect(client.callTool({ name: "whole" })).rejects.toMatchObject({ code: -32603 });
    await expect(client.readResource({ uri: "odd://thrown" })).rejects.toMatchObject({
      code: -32050,
      message: expect.stringContaining("a fault with data"),
    });
    await expect(client.getPrompt({ name: "odd" })).rejects.toMatchObject({ code: -32603 });
    expect((await client.listTools()).tools).toHaveLength(1);
    expect(serving.mcp.inFlight).toBe(0);
  });
});
