import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ToolContext } from "../../../src/environment/context.js";
import { tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { SESSION_META } from "../../../src/protocol/tool.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

const ACCEPT = "application/json, text/event-stream";
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

let serving: Serving | undefined;
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  serving = undefined;
});

async function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${serving?.url}/mcp`, {
    method: "POST",
    headers: { accept: ACCEPT, "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function open(): Promise<string> {
  const response = await post(INITIALIZE);
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error("it didn't come to hold within 5 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("an MCP session", () => {
  it("serves a client of the official SDK: tools, calls, resources and instructions", async () => {
    serving = await serve(new Shop());
    const client = await serving.client();
    expect(client.getInstructions()).toBe("Be kind to the cashier.");
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    expect(names).toEqual(["order", "wait", "refuse", "far_echo"]);
    const ordered = await client.callTool({ name: "order", arguments: { item: "tea" } });
    expect(ordered.structuredContent).toEqual({ ordered: "tea", count: 1 });
    expect((await client.listResources()).resources.map((each) => each.uri)).toEqual(["shop://rules"]);
    expect((await client.readResource({ uri: "shop://rules" })).contents).toEqual([
      { uri: "shop://rules", mimeType: "text/plain", text: "pay first" },
    ]);
  });

  it("lists its tools in the same bytes, alone and in a batch", async () => {
    serving = await serve(new Shop());
    const id = { "mcp-session-id": await open() };
    const alone = await (await post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, id)).text();
    const batch = [
      { jsonrpc: "2.0", id: 2, method: "tools/list" },
      { jsonrpc: "2.0", id: "x", method: "ping" },
    ];
    const together = await (await post(batch, id)).text();
    expect(together).toContain(alone);
    expect(JSON.parse(together)).toHaveLength(2);
    expect(JSON.parse(alone).result.tools).toHaveLength(4);
  });

  it("answers a refused call with its code in text and structured content", async () => {
    serving = await serve(new Shop());
    const client = await serving.client();
    expect(await client.callTool({ name: "refuse", arguments: {} })).toEqual({
      content: [{ type: "text", text: "stale_frame: too old" }],
      structuredContent: {
        code: "stale_frame",
        message: "too old",
        retryable: true,
        applied: "no",
        hint: "take a new one",
      },
      isError: true,
    });
    const bad = await client.callTool({ name: "order", arguments: { item: "", count: 0 } });
    expect(bad.structuredContent).toMatchObject({ code: "invalid_argument", applied: "no" });
    expect((bad.structuredContent as { message: string }).message).toMatch(/item: .*; count: /);
  });

  it("passes a forwarded tool's definition and answer on with every key, block type and number as written", async () => {
    serving = await serve(new Shop());
    const id = { "mcp-session-id": await open() };
    const list = (await (await post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, id)).json()) as {
      result: { tools: object[]; schema_version: string };
    };
    expect(list.result.tools.at(-1)).toEqual({
      name: "far_echo",
      inputSchema: { type: "object" },
      unknownKey: { kept: true },
    });
    expect(list.result.schema_version).toBe("1");
    const call = (args: object) =>
      post({ jsonrpc: "2.0", id: "x", method: "tools/call", params: { name: "far_echo", arguments: args } }, id);
    expect(await (await call({ name: "n", a: [1] })).json()).toEqual({
      jsonrpc: "2.0",
      id: "x",
      result: { content: [{ type: "odd", unknown: 1 }], extra: { name: "n", a: [1] } },
    });
    expect(await (await call({ raw: true })).text()).toBe(
      '{"result":{"content":[{"type":"odd","n":1.0}],"big":9007199254740993},"jsonrpc":"2.0","id":"x"}',
    );
  });

  it("is gone after DELETE: its id is 404 and what hung on its caller is let go", async () => {
    const shop = new Shop();
    serving = await serve(shop);
    const id = { "mcp-session-id": await open() };
    const pending = post({ jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "wait", arguments: {} } }, id);
    await until(() => serving?.mcp.callers.size === 1);
    const deleted = await fetch(`${serving.url}/mcp`, { method: "DELETE", headers: id });
    expect(deleted.status).toBe(200);
    expect(await (await pending).text()).toMatch(/"id":5,"error":\{.*"code":"delivery_failed".*"applied":"unknown"/);
    await until(() => shop.aborted === 1);
    expect(serving.mcp.sessionCount).toBe(0);
    expect(serving.mcp.callers.size).toBe(0);
    expect((await post({ jsonrpc: "2.0", id: 6, method: "ping" }, id)).status).toBe(404);
  });

  it("is closed after its idle time, but not while its event stream is open", async () => {
    serving = await serve(new Shop(), { idleMs: 200 });
    const streaming = await open();
    const stream = await fetch(`${serving.url}/mcp`, {
      headers: { accept: "text/event-stream", "mcp-session-id": streaming },
    });
    expect(stream.status).toBe(200);
    const idle = await open();
    await until(
      async () =>
        (await post({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": "none" })).status === 404 &&
        serving?.mcp.sessionCount === 1,
    );
    expect((await post({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": idle })).status).toBe(404);
    expect((await post({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": streaming })).status).toBe(200);
    await stream.body?.cancel();
    await until(() => serving?.mcp.sessionCount === 0);
  });

  it.each([5, 0, "x"])(
    "aborts a call that the client cancels, and ends its HTTP exchange without an answer (id %j)",
    async (requestId) => {
      const shop = new Shop();
      serving = await serve(shop);
      const id = { "mcp-session-id": await open() };
      const call = { jsonrpc: "2.0", id: requestId, method: "tools/call", params: { name: "wait", arguments: {} } };
      const pending = post(call, id);
      await until(() => serving?.mcp.callers.size === 1);
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
      expect((await post(cancel, id)).status).toBe(202);
      expect(await (await pending).text()).toBe("");
      await until(() => shop.aborted === 1);
      const ping = await (await post({ jsonrpc: "2.0", id: requestId, method: "ping" }, id)).json();
      expect(ping).toEqual({ result: {}, jsonrpc: "2.0", id: requestId });
    },
  );

  it("doesn't begin a call whose cancellation overtook it, and takes one that came after the answer for what it is", async () => {
    const shop = new Shop();
    serving = await serve(shop);
    const id = { "mcp-session-id": await open() };
    const cancel = (requestId: unknown) =>
      post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }, id);
    const call = async (requestId: unknown, name: string) =>
      await (
        await post({ jsonrpc: "2.0", id: requestId, method: "tools/call", params: { name, arguments: {} } }, id)
      ).text();
    for (const requestId of [7, 0, "x"]) {
      expect((await cancel(requestId)).status).toBe(202);
      expect(await call(requestId, "wait")).toBe("");
    }
    expect([shop.waits, serving.mcp.inFlight]).toEqual([0, 0]);
    // Too late: another call may have that id, from a client that gives ids twice.
    expect(await call(8, "refuse")).toContain("stale_frame");
    await cancel(8);
    expect(await call(8, "refuse")).toContain("stale_frame");
    // Ids without end are not kept.
    await cancel("long".repeat(100));
    expect(await call("long".repeat(100), "refuse")).toContain("stale_frame");
    for (let n = 100; n < 400; n += 1) await cancel(n);
    expect(await call(100, "refuse")).toContain("stale_frame");
    expect(await call(399, "refuse")).toBe("");
  });

  it("tells a call that it was cancelled, also where its id is that of a cancelled one which still goes on", async () => {
    const released = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    class Deaf extends Environment {
      @tool({ description: "Goes on until it is released.", input: z.object({}) })
      async hold(_args: object, { signal }: ToolContext) {
        signals.push(signal);
        await released.promise;
      }

      @tool({ description: "Waits for its cancellation.", input: z.object({}) })
      async wait(_args: object, { signal }: ToolContext) {
        signals.push(signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      }
    }
    serving = await serve(new Deaf());
    const id = { "mcp-session-id": await open() };
    const call = (name: string) =>
      post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } }, id);
    const cancel = () => post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }, id);
    const first = call("hold");
    await until(() => signals.length === 1);
    await cancel();
    await first;
    const second = call("wait");
    await until(() => signals.length === 2);
    released.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    await cancel();
    await second;
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
  });

  it("keeps none of the ids of its requests that are very long", async () => {
    serving = await serve(new Shop());
    const id = { "mcp-session-id": await open() };
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const heap = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = heap();
    for (let n = 0; n < 10; n += 1) {
      await (await post({ jsonrpc: "2.0", id: `${n}${"x".repeat(8 << 20)}`, method: "ping" }, id)).text();
    }
    expect(heap() - before).toBeLessThan(20 << 20);
  });

  it("takes no notice of a cancellation whose id or whose reason is none, and goes on", async () => {
    const shop = new Shop();
    serving = await serve(shop);
    const id = { "mcp-session-id": await open() };
    const odd = { toString: 1, valueOf: 1 };
    const cancel = (params: object) => post({ jsonrpc: "2.0", method: "notifications/cancelled", params }, id);
    for (const requestId of [odd, [], null, true]) expect((await cancel({ requestId })).status).toBe(202);
    const call = post({ jsonrpc: "2.0", id: 9, method: "tools/call", params: { name: "wait", arguments: {} } }, id);
    await until(() => shop.waits === 1);
    expect((await cancel({ requestId: 9, reason: odd })).status).toBe(202);
    expect(await (await call).text()).not.toContain('"result"');
    expect([shop.aborted, serving.mcp.inFlight]).toEqual([1, 0]);
  });

  it("turns an answer into an event stream when progress comes before it", async () => {
    serving = await serve(new Shop());
    const client = await serving.client();
    const seen: unknown[] = [];
    const abort = new AbortController();
    const call = client.callTool({ name: "wait", arguments: {} }, undefined, {
      signal: abort.signal,
      onprogress: (progress) => {
        seen.push(progress);
        abort.abort();
      },
    });
    await expect(call).rejects.toThrow();
    expect(seen).toEqual([{ progress: 1, total: 2, message: "half way" }]);
  });

  it("refuses what the protocol doesn't allow with the status and code that MCP names", async () => {
    serving = await serve(new Shop(), { maxSessions: 1 });
    const status = async (response: Promise<Response>) => {
      const { status, body } = await response.then(async (r) => ({ status: r.status, body: await r.text() }));
      return [status, body === "" ? undefined : JSON.parse(body).error.code];
    };
    expect(await status(post(INITIALIZE, { accept: "" }))).toEqual([406, -32000]);
    expect(await status(post({ jsonrpc: "2.0", id: 1, method: "ping" }))).toEqual([400, -32000]);
    expect(await status(post("{nope"))).toEqual([400, -32700]);
    expect(await status(post("[]"))).toEqual([400, -32600]);
    expect(await status(post({ jsonrpc: "1.0", id: 1, method: "ping" }))).toEqual([400, -32600]);
    expect(await status(post(INITIALIZE, { accept: "application/json" }))).toEqual([406, -32000]);
    expect(await status(post(INITIALIZE, { "content-type": "text/plain" }))).toEqual([415, -32000]);
    expect(await status(fetch(`${serving.url}/mcp`, { method: "PUT" }))).toEqual([405, -32000]);
    const clientInfo = { name: "t".repeat(256 << 10), version: "1" };
    expect(await status(post({ ...INITIALIZE, params: { ...INITIALIZE.params, clientInfo } }))).toEqual([400, -32600]);
    const id = { "mcp-session-id": await open() };
    expect(await status(post(INITIALIZE))).toEqual([503, -32000]);
    expect(
      await status(post({ jsonrpc: "2.0", id: 1, method: "ping" }, { ...id, "mcp-protocol-version": "1999-01-01" })),
    ).toEqual([400, -32000]);
    expect(await status(post({ jsonrpc: "2.0", id: [1], method: "ping" }, id))).toEqual([400, -32600]);
    // Of such an id a double makes another one, and the protocol layer answers none.
    expect(await status(post('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', id))).toEqual([400, -32600]);
    expect(await status(post({ jsonrpc: "2.0", id: -1e300, method: "tools/list" }, id))).toEqual([400, -32600]);
    expect(
      await status(post({ jsonrpc: "2.0", id: 1, method: "ping", params: { _meta: { progressToken: {} } } }, id)),
    ).toEqual([400, -32600]);
    expect(await status(fetch(`${serving.url}/mcp`, { headers: { ...id, accept: "application/json" } }))).toEqual([
      406, -32000,
    ]);
    expect(await status(post({ jsonrpc: "2.0", id: 2, method: "nope/nope" }, id))).toEqual([200, -32601]);
    const params = { name: "order", arguments: { item: "x" }, _meta: { [SESSION_META]: "s".repeat(1_025) } };
    expect(await status(post({ jsonrpc: "2.0", id: 2, method: "tools/call", params }, id))).toEqual([200, -32602]);
    expect(await status(post({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "nope" } }, id))).toEqual([
      200, -32602,
    ]);
    expect(
      await status(post({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "order", arguments: [] } }, id)),
    ).toEqual([200, -32602]);
    expect(
      await status(post({ jsonrpc: "2.0", id: 2, method: "resources/read", params: { uri: "shop://none" } }, id)),
    ).toEqual([200, -32002]);
  });

  it("refuses a body that would keep it busy for long, or isn't UTF-8, before it is parsed", async () => {
    serving = await serve(new Shop());
    const id = { "mcp-session-id": await open() };
    const call = (args: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"far_echo","arguments":{"a":${args}}}}`;
    const refused = async (body: string | Buffer) => {
      const started = performance.now();
      const response = await fetch(`${serving?.url}/mcp`, {
        method: "POST",
        headers: { accept: ACCEPT, "content-type": "application/json", ...id },
        body,
      });
      const { error } = (await response.json()) as { error: { code: number; message: string } };
      return { status: response.status, ...error, took: performance.now() - started };
    };
    const deep = await refused(call("[".repeat(10_000_000) + "]".repeat(10_000_000)));
    expect(deep).toMatchObject({ status: 400, code: -32700, message: expect.stringContaining("nested more than 256") });
    // The call itself is three deep.
    const [most, more] = [253, 254].map((depth) => call("[".repeat(depth) + "]".repeat(depth)));
    expect((await post(most, id)).status).toBe(200);
    expect(await refused(more ?? "")).toMatchObject({ message: expect.stringContaining("nested more than 256") });
    const many = await refused(call(`[${"1,".repeat(10_000_000)}1]`));
    expect(many).toMatchObject({
      status: 400,
      code: -32700,
      message: expect.stringContaining("more than 250000 values"),
    });
    const bytes = await refused(
      Buffer.concat([Buffer.from(call('"').slice(0, -3)), Buffer.from([0xff, 0xfe]), Buffer.from('"}}}')]),
    );
    expect(bytes).toMatchObject({ status: 400, code: -32700, message: expect.stringContaining("UTF-8") });
    expect((await post(call(`"${"[{,".repeat(1_000_000)}"`), id)).status).toBe(200);
  });

  it("takes a body over 32 MiB as 413 with limit_exceeded", async () => {
    serving = await serve(new Shop());
    const response = await post(" ".repeat((32 << 20) + 1));
    expect(response.status).toBe(413);
    const { error } = (await response.json()) as { error: object };
    // The same body would be refused again.
    expect(error).toMatchObject({ code: "limit_exceeded", retryable: false, hint: expect.stringMatching(/32 MiB/) });
  });

  it("tells callers that a gateway stamps apart, and ends them with the session that brought them", async () => {
    serving = await serve(new Shop());
    const id = { "mcp-session-id": await open() };
    const order = (session: string) =>
      post(
        {
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: {
            name: "order",
            arguments: { item: "tea" },
            _meta: { "agentenv.io/role": "default", "agentenv.io/session": session },
          },
        },
        { ...id, "agentenv-role": "grader" },
      ).then((response) => response.text());
    await order("a");
    await order("b");
    await order("a");
    expect(serving.mcp.callers.size).toBe(2);
    expect((serving.application.environment as Shop).orders).toEqual(Array(3).fill("tea×1 by nobody"));
    await fetch(`${serving.url}/mcp`, { method: "DELETE", headers: id });
    await until(() => serving?.mcp.callers.size === 0);
  });

  it("hides a tool that is disabled for a role from it and refuses it, and only to it", async () => {
    serving = await serve(new Shop());
    const grader = await serving.client({ "agentenv-role": "grader" });
    const other = await serving.client();
    const told = new Promise<void>((resolve) => {
      grader.fallbackNotificationHandler = async ({ method }) => {
        if (method === "notifications/tools/list_changed") resolve();
      };
    });
    const change = await fetch(`${serving.url}/tools/disable`, {
      method: "POST",
      body: JSON.stringify({ role: "grader", tools: ["order", "far_echo"] }),
    });
    expect(await change.json()).toEqual({ role: "grader", disabled: ["far_echo", "order"], allowed: [] });
    await told;
    expect((await grader.listTools()).tools.map((tool) => tool.name)).toEqual(["wait", "refuse"]);
    expect((await grader.callTool({ name: "far_echo" })).structuredContent).toMatchObject({
      code: "permission_denied",
    });
    expect((await other.callTool({ name: "order", arguments: { item: "tea" } })).isError).toBeUndefined();
    await fetch(`${serving.url}/tools/enable`, {
      method: "POST",
      body: JSON.stringify({ role: "*", tools: ["broken"] }),
    });
    expect((await other.listTools()).tools.map((tool) => tool.name)).toContain("broken");
    expect((await other.callTool({ name: "broken" })).structuredContent).toMatchObject({
      code: "internal",
      applied: "unknown",
    });
  });
});
