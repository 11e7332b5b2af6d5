import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Shop } from "../../../../bundles/shop/shop.js";
import { EnvironmentClient, type Serving } from "../../../../src/index.js";

let serving: Serving;
let client: EnvironmentClient;
beforeEach(async () => {
  serving = await new Shop().serve();
  client = new EnvironmentClient(serving.url);
});
afterEach(async () => {
  await serving.close();
});

describe("the shop", () => {
  it("sells, gives back, and says what a refused order did", async () => {
    await using mcp = await client.mcp();
    expect(mcp.instructions).toContain("small shop");
    expect((await mcp.tools()).map((tool) => tool.name)).toEqual(["search", "order", "refund"]);
    const { structuredContent } = await mcp.call("order", { item: "tea", count: 3 });
    expect(structuredContent).toEqual({ id: "o1", item: "tea", count: 3, total: 13.5, refunded: false });
    expect(await client.invoke("urn:agentenv:stock/v1", { item: "tea" })).toEqual({ item: "tea", left: 17 });
    const refused = await mcp.call("order", { item: "teapot", count: 3 });
    expect(refused.structuredContent).toMatchObject({ code: "invalid_argument", applied: "no", hint: "order fewer" });
    await mcp.call("refund", { order_id: "o1" });
    expect((await mcp.call("refund", { order_id: "o1" })).isError).toBe(true);
    const { resources } = await mcp.request("resources/list", {});
    const own = (resources as { uri: string }[]).filter(({ uri }) => !uri.startsWith("skill://"));
    expect(own).toMatchObject([{ uri: "orders://o1" }]);
    const read = await mcp.request("resources/read", { uri: "orders://o1" });
    expect(JSON.parse((read.contents as { text: string }[])[0]?.text ?? "")).toMatchObject({ refunded: true });
    await expect(mcp.request("resources/read", { uri: "orders://o2" })).rejects.toMatchObject({ code: -32002 });
  });

  it("takes items whole or not at all, gives its orders, and begins anew", async () => {
    const item = { name: "cup", price: 2, stock: 5 };
    await client.addData([{ kind: "data", data: { items: [item] } }]);
    await expect(
      client.addData([
        { kind: "data", data: { items: [{ ...item, stock: 9 }] } },
        { kind: "text", text: "no" },
      ]),
    ).rejects.toMatchObject({ code: "add_failed" });
    expect(await client.invoke("urn:agentenv:stock/v1", { item: "cup" })).toEqual({ item: "cup", left: 5 });
    await using mcp = await client.mcp();
    await mcp.call("order", { item: "cup" });
    expect(await client.getData()).toMatchObject([{ kind: "data", data: { orders: [{ id: "o1", item: "cup" }] } }]);
    await client.resetData();
    expect(await client.getData()).toEqual([{ kind: "data", data: { orders: [] } }]);
    await expect(client.invoke("urn:agentenv:stock/v1", { item: "cup" })).rejects.toMatchObject({ status: 404 });
  });

  it("serves its skill with its files", async () => {
    expect(await client.invoke("urn:agentenv:skill/v1")).toMatchObject({
      name: "shopping",
      description: "How to buy in the shop without paying for what isn't there.",
      files: [{ path: "answers/refusals.md" }, { path: "prices.txt", content: "Prices are in euros, with tax." }],
    });
  });
});
