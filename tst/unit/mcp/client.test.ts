import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { Environment } from "../../../src/environment/environment.js";
import { McpClient } from "../../../src/mcp/client.js";
import { serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";
import { until } from "../../harness/until.js";

it("a client lets go of its caller's signal with the answer, and cancels with it until then", async () => {
  const shop = new Shop();
  await using serving = await serve(shop);
  const listening = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = AbortSignal.prototype;
  listening.signal.addEventListener = function (this: AbortSignal, ...args: Parameters<typeof addEventListener>) {
    listeners += 1;
    addEventListener.apply(this, args);
  };
  listening.signal.removeEventListener = function (this: AbortSignal, ...args: Parameters<typeof removeEventListener>) {
    listeners -= 1;
    removeEventListener.apply(this, args);
  };
  await using client = await McpClient.connect(serving.url, { signal: listening.signal });
  for (let n = 0; n < 20; n += 1) await client.call("order", { item: "tea" }, listening.signal);
  expect(listeners).toBe(0);
  const waiting = client.call("wait", {}, listening.signal);
  await until(() => shop.waits === 1);
  listening.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow();
  await until(() => shop.aborted === 1);
});

it("closes an MCP session at a server that doesn't answer any more, within its deadline", async () => {
  const answers: Record<string, object> = {
    initialize: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } },
  };
  const server = createServer(async (request, response) => {
    if (request.method !== "POST") return;
    const { id, method } = JSON.parse((await text(request)) || "{}") as { id?: number; method: string };
    const session = { "mcp-session-id": "s", "content-type": "application/json" };
    if (id === undefined) response.writeHead(202, session).end();
    else response.writeHead(200, session).end(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = await McpClient.connect(url, { timeoutMs: 200 });
    const before = performance.now();
    await client.close();
    expect(performance.now() - before).toBeLessThan(3_000);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

it("a client finds no tool, and no error, where an environment has none", async () => {
  class Silent extends Environment {}
  await using serving = await serve(new Silent());
  await using client = await McpClient.connect(serving.url);
  expect(await client.tools()).toEqual([]);
});
