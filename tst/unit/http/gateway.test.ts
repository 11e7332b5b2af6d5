import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { EnvironmentClient } from "../../../src/client/environment-client.js";
import type { ToolContext } from "../../../src/environment/context.js";
import { tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { Gateway } from "../../../src/http/gateway.js";
import { Tokens } from "../../../src/http/tokens.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

const TOKEN = "f".repeat(16);

/** Says who it thinks is calling. */
class Desk extends Environment {
  @tool({ description: "Who.", input: z.object({}) })
  whoami(_args: object, { role, caller }: ToolContext) {
    return { role: role ?? null, session: caller.session };
  }
}

let shop: Serving;
let desk: Serving;
let gateway: Serving;
beforeEach(async () => {
  shop = await serve(new Shop(), { tokens: Tokens.parse(`framework:${TOKEN}`, "tokens") });
  desk = await serve(new Desk());
  gateway = await serve(new Gateway({ shop: { url: shop.url, token: TOKEN }, desk: { url: desk.url } }));
});
afterEach(async () => {
  for (const each of [gateway, shop, desk]) await each[Symbol.asyncDispose]();
});

describe("a gateway", () => {
  it("shows its environments' cards with endpoints that are reached through it, data planes and MCP included", async () => {
    const client = new EnvironmentClient(gateway.url);
    const card = await client.card();
    expect(card.name).toBe("Gateway");
    expect(card.capabilities.tools?.map((each) => each.name)).toEqual([
      "order",
      "wait",
      "refuse",
      "far_echo",
      "whoami",
    ]);
    const child = card.children_environments?.find((each) => each.name === "shop");
    expect(child).toMatchObject({
      url: "/children/shop/agentenv",
      additionalInterfaces: [{ url: "/children/shop/mcp", transport: "mcp" }],
    });
    const stock = child?.capabilities.extensions?.find((each) => each.uri === "urn:agentenv:stock/v1");
    expect(stock?.params).toMatchObject({ methods: { get: { endpoint: "/children/shop/agentenv/ext/stock/get" } } });
    const disable = child?.capabilities.extensions?.find((each) => each.uri === "urn:agentenv:disable-tool/v1");
    expect(disable?.params).toMatchObject({ endpoint: "/children/shop/tools/disable" });
    const left = await fetch(`${gateway.url}/children/shop/agentenv/ext/stock/get?item=tea`);
    expect(await left.json()).toEqual({ item: "tea", left: 3 });
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "data/add",
      params: { parts: [{ kind: "text", text: "x" }] },
    });
    const added = await fetch(`${gateway.url}${child?.url}`, { method: "POST", body });
    expect(await added.json()).toMatchObject({ result: {} });
    expect((shop.application.environment as Shop).orders).toEqual(["x"]);
    expect((await fetch(`${gateway.url}/children/none/agentenv`, { method: "POST" })).status).toBe(404);
  });

  it("serves all of their tools, each call with its caller's role and session", async () => {
    const graders = [await gateway.client({ "agentenv-role": "grader" }), await gateway.client()];
    const seen = await Promise.all(
      graders.map(async (client) => {
        const { content } = await client.callTool({ name: "whoami", arguments: {} });
        return JSON.parse((content as { text: string }[])[0]?.text ?? "") as { role: string | null; session: string };
      }),
    );
    expect(seen.map(({ role }) => role)).toEqual(["grader", null]);
    expect(new Set(seen.map(({ session }) => session)).size).toBe(2);
    const ordered = await graders[0]?.callTool({ name: "order", arguments: { item: "tea" } });
    expect(ordered?.structuredContent).toEqual({ ordered: "tea", count: 1 });
    expect((shop.application.environment as Shop).orders).toEqual(["tea×1 by grader"]);
  });

  it("lists to each role what its environments show it", async () => {
    const grader = await gateway.client({ "agentenv-role": "grader" });
    const other = await gateway.client();
    const change = JSON.stringify({ role: "grader", tools: ["order"] });
    await fetch(`${gateway.url}/children/shop/tools/disable`, { method: "POST", body: change });
    expect((await grader.listTools()).tools.map((each) => each.name)).not.toContain("order");
    expect((await other.listTools()).tools.map((each) => each.name)).toContain("order");
    expect((await grader.callTool({ name: "order", arguments: { item: "tea" } })).structuredContent).toMatchObject({
      code: "permission_denied",
    });
  });

  it("gives a child's own card with the endpoints that it has through the gateway", async () => {
    const client = new EnvironmentClient(gateway.url);
    const { body } = await client.get("/children/shop/.well-known/agent-env.json");
    const card = await client.card();
    expect(body).toEqual(card.children_environments?.find((each) => each.name === "shop"));
    expect(body).toMatchObject({ url: "/children/shop/agentenv" });
  });

  it("goes on with the others while one of them can't be reached, which its own calls say", async () => {
    const before = await new EnvironmentClient(gateway.url).card();
    await desk[Symbol.asyncDispose]();
    expect(await new EnvironmentClient(gateway.url).card()).toEqual(before);
    const client = await gateway.client();
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["order", "whoami"]));
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["shop://rules"]);
    const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
    expect(structuredContent).toMatchObject({ code: "device_unavailable", applied: "no" });
    const ordered = await client.callTool({ name: "order", arguments: { item: "tea" } });
    expect(ordered.structuredContent).toEqual({ ordered: "tea", count: 1 });
  });

  it("names the environment whose card it never read and can't read now", async () => {
    await desk[Symbol.asyncDispose]();
    const { status, body } = await new EnvironmentClient(gateway.url).get("/.well-known/agent-env.json");
    expect([status, body]).toMatchObject([
      503,
      { error: { code: "device_unavailable", applied: "no", message: expect.stringMatching(/^the card of desk /) } },
    ]);
  });

  it("is ready when all of them are", async () => {
    expect(await new EnvironmentClient(gateway.url).ready()).toEqual({ ready: true, reasons: [] });
    await desk[Symbol.asyncDispose]();
    const { ready, reasons } = await new EnvironmentClient(gateway.url).ready();
    expect([ready, reasons.length, reasons[0]?.startsWith("desk:")]).toEqual([false, 1, true]);
  });

  it("is refused where two of them serve the same name, or one can't be reached", async () => {
    await expect(serve(new Gateway({ a: { url: desk.url }, b: { url: desk.url } }))).rejects.toThrow(
      /the tool "whoami" is served twice: by the server a and by the server b/,
    );
    await expect(serve(new Gateway({ a: { url: "http://127.0.0.1:1" } }))).rejects.toThrow(/a can't be forwarded/);
    expect(() => new Gateway({ "a/b": { url: desk.url } })).toThrow(/can't serve/);
  });
});
