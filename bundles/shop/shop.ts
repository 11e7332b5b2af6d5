import { z } from "zod";
import {
  AgentEnvError,
  addData,
  agentSkill,
  Environment,
  extension,
  getData,
  INTAKE_URN,
  type JsonObject,
  type Part,
  resetData,
  resource,
  type ServedExtension,
  serverInstructions,
  type ToolContext,
  tool,
} from "../../src/index.js";

const Item = z.object({ name: z.string().min(1), price: z.number().positive(), stock: z.int().min(0) });
type Item = z.infer<typeof Item>;

const Order = z.object({ id: z.string(), item: z.string(), count: z.int(), total: z.number(), refunded: z.boolean() });
type Order = z.infer<typeof Order>;

/** What the shop sells when nothing else was added. */
const FIRST_ITEMS: readonly Item[] = [
  { name: "tea", price: 4.5, stock: 20 },
  { name: "teapot", price: 30, stock: 2 },
];

const SKILL = `---
name: shopping
description: How to buy in the shop without paying for what isn't there.
---
Search before you order: names are exact, and an order of more than the stock is refused whole. An order that was refused
with \`applied: no\` cost nothing. A refund puts the items back; it works once an order. What to do when the shop says no is in
[answers/refusals.md](answers/refusals.md).
`;

const REFUSALS = `# When the shop says no

| code | what to do |
| --- | --- |
| \`target_unavailable\` | there is no such item, or no such order to give back: search, and take the name as it is written |
| \`invalid_argument\` | fewer are left than you want, or a count is no whole number: order fewer |
`;

/** A shop: search, order and refund, with its stock as data that an orchestrator adds and reads. */
export class Shop extends Environment {
  #items = new Map<string, Item>();
  #orders = new Map<string, Order>();

  constructor() {
    super();
    this.reset();
  }

  @serverInstructions
  welcome(): string {
    return "You buy in a small shop. Every order counts; read the skill before the first one.";
  }

  @agentSkill
  shopping() {
    return [
      "shopping",
      SKILL,
      { "answers/refusals.md": REFUSALS, "prices.txt": "Prices are in euros, with tax." },
    ] as const;
  }

  @tool({
    description: "Finds what the shop sells.",
    input: z.object({ query: z.string().default("").describe("Part of a name; empty for everything.") }),
    output: z.object({ items: z.array(Item) }),
    annotations: { readOnlyHint: true, openWorldHint: false },
  })
  search({ query }: { query: string }) {
    return { items: [...this.#items.values()].filter((item) => item.name.includes(query)) };
  }

  @tool({
    description: "Orders an item and pays for it.",
    input: z.object({ item: z.string().describe("Its exact name."), count: z.int().min(1).default(1) }),
    output: Order,
    annotations: { destructiveHint: false, openWorldHint: false },
  })
  order({ item: name, count }: { item: string; count: number }, { progress }: ToolContext) {
    const item = this.#items.get(name);
    if (item === undefined) {
      throw new AgentEnvError("target_unavailable", `the shop sells no ${JSON.stringify(name)}`, {
        hint: "search first",
      });
    }
    if (item.stock < count) {
      throw new AgentEnvError("invalid_argument", `only ${item.stock} of ${name} are left`, { hint: "order fewer" });
    }
    progress(1, 2, "paid");
    item.stock -= count;
    const id = `o${this.#orders.size + 1}`;
    const order = { id, item: name, count, total: item.price * count, refunded: false };
    this.#orders.set(id, order);
    this.resourcesChanged();
    return order;
  }

  @tool({
    description: "Gives an order back, once.",
    input: z.object({ order_id: z.string() }),
    output: Order,
    annotations: { idempotentHint: false, openWorldHint: false },
  })
  refund({ order_id }: { order_id: string }) {
    const order = this.#orders.get(order_id);
    if (order === undefined || order.refunded) {
      throw new AgentEnvError("target_unavailable", `there is no order ${JSON.stringify(order_id)} to give back`);
    }
    const item = this.#items.get(order.item);
    if (item !== undefined) item.stock += order.count;
    order.refunded = true;
    this.resourceUpdated(`orders://${order_id}`);
    return order;
  }

  @resource("orders://{order_id}", {
    description: "An order, as JSON.",
    mimeType: "application/json",
    subscribe: true,
    listed: "orderUris",
    complete: { order_id: "orderIds" },
  })
  orderText({ order_id }: { order_id: string }): string {
    return JSON.stringify(this.#orders.get(order_id));
  }

  orderUris(): string[] {
    return [...this.#orders.keys()].map((id) => `orders://${id}`);
  }

  orderIds(value: string): string[] {
    return [...this.#orders.keys()].filter((id) => id.startsWith(value));
  }

  @extension("urn:agentenv:stock/v1", {
    op: "get",
    method: "GET",
    description: "How many of an item are left.",
    request: z.strictObject({ item: z.string() }),
  })
  stock({ item }: { item: string }) {
    const found = this.#items.get(item);
    if (found === undefined) throw new AgentEnvError("target_unavailable", `the shop sells no ${JSON.stringify(item)}`);
    return { item, left: found.stock };
  }

  override extensionParams(uri: string): JsonObject {
    return uri === "urn:agentenv:stock/v1" ? { unit: "pieces" } : {};
  }

  /** What the data plane takes and gives, for orchestrators that read the card. */
  override extensions(): ServedExtension[] {
    const add = [{ part: "data", format: "shop-items", load: "additive" }];
    const get = [{ part: "data", format: "shop-orders" }];
    return [{ uri: INTAKE_URN, description: "The shop's data.", methods: [], params: () => ({ add, get }) }];
  }

  @resetData
  reset(): void {
    this.#items = new Map(FIRST_ITEMS.map((item) => [item.name, { ...item }]));
    this.#orders = new Map();
  }

  /** Takes items, in place of those of the same name. All parts are checked before any is taken. */
  @addData
  add(parts: Part[]): void {
    const added = parts.map((part) => {
      const items = part.kind === "data" ? z.object({ items: z.array(Item) }).safeParse(part.data) : undefined;
      if (items?.success !== true)
        throw new Error('the shop takes data parts: {"items": [{"name", "price", "stock"}]}');
      return items.data.items;
    });
    for (const item of added.flat()) this.#items.set(item.name, item);
  }

  @getData
  orders(): Part[] {
    return [{ kind: "data", data: { orders: [...this.#orders.values()] } }];
  }
}
