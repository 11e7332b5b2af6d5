import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tokens } from "../../../src/http/tokens.js";
import { Card } from "../../../src/protocol/card.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

let serving: Serving;
beforeEach(async () => {
  serving = await serve(new Shop());
});
afterEach(async () => {
  await serving[Symbol.asyncDispose]();
});

async function rpc(body: unknown): Promise<{ error?: { code: number; data?: object }; result?: unknown }> {
  const response = await fetch(`${serving.url}/agentenv`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Awaited<ReturnType<typeof rpc>>;
}

function withHost(host: string, path = "/.well-known/agent-env.json"): Promise<number> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(serving.url);
    request({ port, host: "127.0.0.1", path, headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

describe("the HTTP surface", () => {
  it("serves a card that says what there is and where", async () => {
    const card = Card.parse(await (await fetch(`${serving.url}/.well-known/agent-env.json`)).json());
    expect(card).toMatchObject({
      name: "Shop",
      protocolVersion: "1.0",
      url: "/agentenv",
      preferredTransport: "JSONRPC",
      additionalInterfaces: [{ url: "/mcp", transport: "mcp" }],
      capabilities: { operations: ["data/reset", "data/add", "data/get"] },
      children_environments: null,
    });
    const stock = card.capabilities.extensions?.find((each) => each.uri === "urn:agentenv:stock/v1");
    expect(stock?.params).toMatchObject({
      methods: {
        get: { method: "GET", endpoint: "/agentenv/ext/stock/get", request: { required: ["item"] } },
        fail: { method: "POST", endpoint: "/agentenv/ext/stock/fail" },
      },
    });
    const disable = card.capabilities.extensions?.find((each) => each.uri === "urn:agentenv:disable-tool/v1");
    expect(disable?.params).toMatchObject({ endpoint: "/tools/disable", methods: { disable: { method: "POST" } } });
  });

  it("calls an extension's method with params from the query, and refuses params that are missing, unknown or mistyped", async () => {
    const get = async (query: string) => {
      const response = await fetch(`${serving.url}/agentenv/ext/stock/get${query}`);
      return [response.status, await response.json()] as [number, { error?: { code: string } }];
    };
    expect(await get("?item=tea&at_least=7")).toEqual([200, { item: "tea", left: 7 }]);
    for (const query of ["", "?item=tea&more=1", "?item=tea&at_least=many"]) {
      const [status, body] = await get(query);
      expect([status, body.error?.code]).toEqual([400, "invalid_params"]);
    }
  });

  it("answers an extension that throws with extension_failed and its message", async () => {
    const response = await fetch(`${serving.url}/agentenv/ext/stock/fail`, { method: "POST" });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({
      ok: false,
      error: { code: "extension_failed", message: "no stock at all", retryable: false, applied: "unknown" },
    });
  });

  it("serves the data plane as JSON-RPC under HTTP 200, errors included", async () => {
    const call = (method: string, params?: object) => rpc({ jsonrpc: "2.0", id: 1, method, params });
    expect((await call("data/add", { parts: [{ kind: "text", text: "tea" }] })).result).toEqual({});
    expect((await call("data/get")).result).toEqual({ parts: [{ kind: "text", text: "tea" }] });
    expect((await call("data/reset")).result).toEqual({});
    expect((await call("data/get")).result).toEqual({ parts: [] });
    expect((await call("data/add", { parts: [] })).error).toMatchObject({
      code: -32602,
      data: { detail: expect.stringContaining("parts") },
    });
    expect((await call("data/add", { parts: [{ kind: "data", data: {} }] })).error).toMatchObject({
      code: -32000,
      message: "only text is taken",
      data: { code: "add_failed" },
    });
    expect((await call("data/burn")).error).toMatchObject({ code: -32601 });
    expect((await rpc("{")).error).toMatchObject({ code: -32700 });
    expect((await rpc({ id: 1 })).error).toMatchObject({ code: -32600 });
  });

  it("answers a path that isn't there, and a body over its limit, in the protocol's error shape", async () => {
    const nowhere = await fetch(`${serving.url}/nowhere`);
    expect([nowhere.status, ((await nowhere.json()) as { ok: boolean }).ok]).toEqual([404, false]);
    const malformed = await fetch(`${serving.url}/%zz`);
    expect([malformed.status, await malformed.json()]).toEqual([
      400,
      { ok: false, error: expect.objectContaining({ code: "invalid_params" }) },
    ]);
    const large = await fetch(`${serving.url}/agentenv/ext/stock/fail`, { method: "POST", body: "x".repeat(2 << 20) });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ ok: false, error: { code: "limit_exceeded" } });
  });

  it("answers an MCP request that fails in a way that isn't foreseen, and goes on", async () => {
    vi.spyOn(serving.mcp, "handle").mockImplementationOnce(() => {
      throw new TypeError("a fault");
    });
    const ask = () => fetch(`${serving.url}/mcp`, { method: "POST", body: "{}" });
    const failed = await ask();
    expect([failed.status, await failed.json()]).toMatchObject([500, { error: { code: "internal" } }]);
    expect((await ask()).status).toBe(415);
  });

  it("refuses a Host that isn't its own and an Origin of another site, but not a kubelet's health check", async () => {
    expect(await withHost("localhost:1")).toBe(200);
    expect(await withHost("127.0.0.1")).toBe(200);
    expect(await withHost("[::1]:8")).toBe(200);
    expect(await withHost("evil.example")).toBe(403);
    expect(await withHost("evil.example", "/healthz")).toBe(200);
    const from = async (origin: string, path = "/agentenv/ext/stock/get?item=tea") =>
      (await fetch(serving.url + path, { headers: { origin } })).status;
    expect(await from(serving.url)).toBe(200);
    for (const origin of [
      "https://evil.example",
      "http://203.0.113.7",
      "http://127.0.0.1:1",
      "http://localhost",
      "null",
    ]) {
      expect([origin, await from(origin), await from(origin, "/mcp")]).toEqual([origin, 403, 403]);
    }
  });

  it("lets pages of a host that is allowed by name call it", async () => {
    await using allowing = await serve(new Shop(), { allowedHosts: ["desk.example"] });
    const from = async (origin: string) =>
      (await fetch(`${allowing.url}/agentenv/ext/stock/get?item=tea`, { headers: { origin } })).status;
    expect(await from("https://desk.example")).toBe(200);
    expect(await from("http://desk.example:8080")).toBe(200);
    expect(await from("http://other.example")).toBe(403);
  });

  it("lets a token reach what its scope says", async () => {
    const tokens = Tokens.parse("agent:aaaaaaaaaaaaaaaa\nframework:ffffffffffffffff\n", "tokens");
    await using guarded = await serve(new Shop(), { tokens });
    const status = async (path: string, token?: string, method = "GET") => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return (await fetch(guarded.url + path, { method, headers })).status;
    };
    expect(await status("/.well-known/agent-env.json")).toBe(401);
    expect(await status("/.well-known/agent-env.json", "x".repeat(16))).toBe(401);
    expect(await status("/.well-known/agent-env.json", "a".repeat(16))).toBe(403);
    expect(await status("/.well-known/agent-env.json", "f".repeat(16))).toBe(200);
    expect(await status("/mcp", undefined, "PUT")).toBe(401);
    expect(await status("/mcp", "a".repeat(16), "PUT")).toBe(405);
    expect(await status("/mcp", "f".repeat(16), "PUT")).toBe(405);
    expect(await status("/healthz")).toBe(200);
  });
});
