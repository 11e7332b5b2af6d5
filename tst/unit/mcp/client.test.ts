import { expect, it } from "vitest";
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
