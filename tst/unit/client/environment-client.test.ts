import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EnvironmentClient, findExtension } from "../../../src/client/environment-client.js";
import { RemoteError } from "../../../src/client/remote-error.js";
import { Tokens } from "../../../src/http/tokens.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

let serving: Serving;
let client: EnvironmentClient;
beforeEach(async () => {
  serving = await serve(new Shop());
  client = new EnvironmentClient(serving.url);
});
afterEach(async () => {
  await serving[Symbol.asyncDispose]();
});

const STOCK = "urn:agentenv:stock/v1";

describe("the client of an environment", () => {
  it("reads the card and finds what is on it", async () => {
    const card = await client.card();
    expect(card.name).toBe("Shop");
    expect(findExtension(card, STOCK)?.description).toBe("How many are left.");
    expect(findExtension(card, "urn:agentenv:none/v1")).toBeUndefined();
    expect(await client.ready()).toEqual({ ready: true, reasons: [] });
  });

  it("invokes an extension's method by GET and POST, and throws its refusals with every field", async () => {
    expect(await client.invoke(STOCK, { item: "a&b", at_least: 7 }, { op: "get" })).toEqual({ item: "a&b", left: 7 });
    await expect(client.invoke(STOCK, {}, { op: "fail" })).rejects.toMatchObject({
      name: "RemoteError",
      status: 500,
      code: "extension_failed",
      message: "no stock at all",
      applied: "unknown",
      retryable: false,
    });
    await expect(client.invoke(STOCK, { more: 1 }, { op: "get" })).rejects.toMatchObject({
      status: 400,
      code: "invalid_params",
      hint: "it takes item, at_least",
    });
    await expect(client.invoke(STOCK)).rejects.toMatchObject({ code: "unsupported", hint: "it has get, fail" });
  });

  it("adds, gets and resets data, and says what a failed operation did", async () => {
    await client.addData([{ kind: "text", text: "tea" }]);
    expect(await client.getData()).toEqual([{ kind: "text", text: "tea" }]);
    await client.resetData();
    expect(await client.getData()).toEqual([]);
    await expect(client.addData([{ kind: "data", data: {} }])).rejects.toMatchObject({
      code: "add_failed",
      applied: "unknown",
    });
    await expect(client.addData([])).rejects.toMatchObject({ applied: "no", data: { detail: expect.any(String) } });
  });

  it("speaks MCP as its role", async () => {
    const grader = new EnvironmentClient(serving.url, { role: "grader" });
    await using mcp = await grader.mcp();
    expect(mcp.instructions).toBe("Be kind to the cashier.");
    expect((await mcp.tools()).map((tool) => tool.name)).toContain("order");
    await mcp.call("order", { item: "tea" });
    expect((serving.application.environment as Shop).orders).toEqual(["tea×1 by grader"]);
  });

  it("sends its token, and tells a refusal from silence", async () => {
    const tokens = Tokens.parse("framework:ffffffffffffffff", "tokens");
    await using guarded = await serve(new Shop(), { tokens });
    await expect(new EnvironmentClient(guarded.url).card()).rejects.toMatchObject({
      status: 401,
      code: "permission_denied",
    });
    const holder = new EnvironmentClient(guarded.url, { token: "f".repeat(16) });
    expect((await holder.card()).name).toBe("Shop");
  });
});

describe("a server that isn't there, is silent or breaks off", () => {
  let server: Server;
  let url: string;
  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === "/agentenv") response.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it("is not applied where nothing was sent, and unknown where the answer is lost", async () => {
    const lost = new EnvironmentClient(url);
    await expect(lost.resetData()).rejects.toMatchObject({
      code: "delivery_failed",
      applied: "unknown",
      retryable: false,
    });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await expect(lost.resetData()).rejects.toMatchObject({
      code: "device_unavailable",
      applied: "no",
      retryable: true,
    });
  });

  it("ends a call at its deadline, or when it is let go", async () => {
    const silent = new EnvironmentClient(url, { timeoutMs: 50 });
    await expect(silent.card()).rejects.toMatchObject({ code: "timeout", applied: "no" });
    server.removeAllListeners("request");
    await expect(silent.resetData()).rejects.toMatchObject({ code: "timeout", applied: "unknown" });
    const abort = new AbortController();
    const call = new EnvironmentClient(url).card({ signal: abort.signal });
    abort.abort(new Error("let go"));
    await expect(call).rejects.toThrow("let go");
    await expect(call).rejects.not.toBeInstanceOf(RemoteError);
  });
});

describe("two calls that wait for the same card", () => {
  it("each have their own deadline and their own signal", async () => {
    let reads = 0;
    const waiting: (() => void)[] = [];
    const slow = createServer((_request, response) => {
      reads += 1;
      waiting.push(() => response.end(JSON.stringify(card)));
    });
    const card = await client.card();
    await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
    try {
      const both = new EnvironmentClient(`http://127.0.0.1:${(slow.address() as AddressInfo).port}`);
      const abort = new AbortController();
      const first = both.card({ signal: abort.signal });
      const second = both.card();
      const late = both.card({ timeoutMs: 50 });
      await expect(late).rejects.toMatchObject({ code: "timeout", applied: "no" });
      abort.abort(new Error("let go"));
      await expect(first).rejects.toThrow("let go");
      for (const answer of waiting) answer();
      expect((await second).name).toBe("Shop");
      const before = reads;
      expect((await both.card()).name).toBe("Shop");
      expect(reads).toBe(before);
    } finally {
      slow.closeAllConnections();
      slow.close();
    }
  });
});
