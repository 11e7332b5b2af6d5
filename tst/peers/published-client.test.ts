import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Shop } from "../../bundles/shop/shop.js";
import type { Serving } from "../../src/index.js";
import { publishedPython } from "../harness/published-probe.js";

const run = promisify(execFile);

let serving: Serving;
beforeAll(async () => {
  serving = await new Shop().serve();
});
afterAll(async () => {
  await serving.close();
});

/** Uses the published client as its users do, and prints what it saw. */
const PROGRAM = `
import asyncio, json, sys
from agentenv_protocol import client
from agentenv_protocol.types import DataPart

url = sys.argv[1]

async def main():
    seen = {}
    card = await client.get_card(url)
    seen["name"] = card["name"]
    seen["supports_v1"] = await client.supports_v1(url)
    seen["mcp"] = client.mcp_path(card)
    seen["tool"] = client.find_tool(card, "order")["name"]
    seen["unit"] = client.extension_params(card, "urn:agentenv:stock/v1")["unit"]
    seen["intake"] = client.intake_declaration(card)
    seen["method"] = client.find_extension_method(card, "urn:agentenv:stock/v1", "get")["method"]
    items = {"items": [{"name": "cup", "price": 2, "stock": 5}]}
    await client.add_data(url, [DataPart(data=items)])
    seen["stock"] = await client.invoke_extension(url, card, "urn:agentenv:stock/v1", {"item": "cup"}, method="get")
    seen["skill"] = (await client.invoke_extension(url, card, "urn:agentenv:skill/v1", {}, method="get"))["name"]
    try:
        await client.invoke_extension(url, card, "urn:agentenv:stock/v1", {"item": "none"}, method="get")
    except client.ExtensionCallError as error:
        seen["refused"] = {k: getattr(error, k, None) for k in ("code", "retryable", "applied", "hint")}
    seen["got"] = (await client.get_data(url)).model_dump(mode="json", exclude_none=True)
    await client.reset_data(url)
    try:
        await client.invoke_extension(url, card, "urn:agentenv:stock/v1", {"item": "cup"}, method="get")
    except client.ExtensionCallError as error:
        seen["after_reset"] = error.code
    print(json.dumps(seen))

asyncio.run(main())
`;

describe("the published Python client", () => {
  it("reads the card, invokes extensions, adds, gets and resets data on bundles/shop", async () => {
    const { stdout } = await run(await publishedPython(), ["-c", PROGRAM, serving.url], { timeout: 60_000 });
    expect(JSON.parse(stdout)).toEqual({
      name: "Shop",
      supports_v1: true,
      mcp: "/mcp",
      tool: "order",
      unit: "pieces",
      intake: expect.objectContaining({ add: [expect.objectContaining({ part: "data", format: "shop-items" })] }),
      method: "GET",
      stock: { item: "cup", left: 5 },
      skill: "shopping",
      refused: { code: "target_unavailable", retryable: false, applied: "no", hint: null },
      got: expect.objectContaining({ parts: [expect.objectContaining({ kind: "data", data: { orders: [] } })] }),
      after_reset: "target_unavailable",
    });
  });
});
