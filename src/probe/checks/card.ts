import { z } from "zod";
import { MCP_PATH, PROTOCOL_VERSION } from "../../protocol/card.js";
import { BUTTONS, COMPUTER_URN, KEYBOARD_URN, POINTER_URN } from "../../protocol/computer.js";
import type { JsonObject } from "../../protocol/tool.js";
import { type BasicCheck, expectSame, expectThat } from "../check.js";

const MINIMUM = ["screenshot", "click", "drag", "scroll", "type", "key", "wait"].map((name) => `computer_${name}`);
const POINTER = ["move", "down", "up", "position", "list"].map((name) => `computer_pointer_${name}`);
const KEYBOARD = ["down", "up"].map((name) => `computer_keyboard_${name}`);
const READS = ["screenshot", "wait", "pointer_position", "pointer_list"].map((name) => `computer_${name}`);

/** What computer/v1 says on the card. */
const Params = z.looseObject({
  buttons: z.array(z.enum(BUTTONS)).min(1),
  max_click_count: z.int().min(1),
  keys: z.union([z.literal("all"), z.array(z.string()).min(1)]),
  max_text_length: z.int().min(1),
  max_wait_ms: z.int().min(1),
  max_drag_points: z.int().min(2),
  max_duration_ms: z.int().min(1),
  max_key_repeat: z.int().min(1),
  max_scroll_amount: z.int().min(1),
  delivery: z.literal("foreground"),
  platform: z.looseObject({ os: z.string(), arch: z.string() }),
});

/** True of the card of any environment, as the next two are. */
export const cardIsTheProtocols: BasicCheck = {
  id: "P1",
  name: "the card is the protocol's, and says where MCP and the data plane are",
  level: "basic",
  async run({ card }) {
    expectSame("protocolVersion", card.protocolVersion, PROTOCOL_VERSION);
    expectThat(card.url.startsWith("/"), `the data plane is at ${card.url}`);
    const mcp = card.additionalInterfaces.find(({ transport }) => transport === "mcp");
    expectSame("the address of MCP", mcp?.url, MCP_PATH);
  },
};

export const methodsAreDeclared: BasicCheck = {
  id: "P1",
  name: "the methods of its extensions say how they are called and with what",
  level: "basic",
  async run({ card }) {
    for (const { uri, params } of card.capabilities.extensions ?? []) {
      const { methods, endpoint } = (params ?? {}) as { methods?: Record<string, JsonObject>; endpoint?: string };
      for (const [op, method] of Object.entries(methods ?? {})) {
        const what = `${op} of ${uri}`;
        expectThat(method.method === "GET" || method.method === "POST", `${what} is called by ${method.method}`);
        const path = method.endpoint ?? endpoint;
        expectThat(typeof path === "string" && path.startsWith("/"), `${what} has no endpoint`);
        expectThat(typeof method.request === "object", `${what} has no schema of its request`);
      }
    }
  },
};

export const toolsAreOnTheCard: BasicCheck = {
  id: "P1",
  name: "every listed tool is on the card, with the same description and arguments",
  level: "basic",
  async run(driver) {
    const onCard = new Map((driver.card.capabilities.tools ?? []).map((tool) => [tool.name, tool]));
    for (const { name, description, inputSchema } of await (await driver.session()).tools()) {
      const tool = onCard.get(name);
      expectThat(tool !== undefined, `${name} is not on the card`);
      expectSame(`the card's description of ${name}`, tool.description ?? "", description ?? "");
      expectSame(`the card's arguments of ${name}`, argumentNames(tool.inputSchema), argumentNames(inputSchema));
    }
  },
};

/** P1: the card and the tools agree with each other and with computer/v1. */
export const cardChecks: BasicCheck[] = [
  cardIsTheProtocols,
  {
    id: "P1",
    name: "the card declares computer/v1 with its limits",
    level: "basic",
    async run(driver) {
      expectThat(driver.declares(COMPUTER_URN), `the card has no ${COMPUTER_URN}`);
      const params = Params.safeParse(driver.params(COMPUTER_URN));
      expectThat(params.success, `its params are wrong: ${params.success ? "" : z.prettifyError(params.error)}`);
    },
  },
  methodsAreDeclared,
  {
    id: "P1",
    name: "the seven tools are listed with the schemas of what they take and answer",
    level: "basic",
    async run(driver) {
      const tools = new Map((await (await driver.session()).tools()).map((tool) => [tool.name, tool]));
      const missing = MINIMUM.filter((name) => !tools.has(name));
      expectThat(missing.length === 0, `there is no ${missing.join(", ")}`);
      const bare = MINIMUM.filter((name) => !(tools.get(name)?.inputSchema && tools.get(name)?.outputSchema));
      expectThat(bare.length === 0, `without both schemas: ${bare.join(", ")}`);
    },
  },
  {
    id: "P1",
    name: "each group's tools come with its extension, and whole",
    level: "basic",
    async run(driver) {
      const listed = new Set((await (await driver.session()).tools()).map(({ name }) => name));
      for (const [uri, names] of [
        [POINTER_URN, POINTER],
        [KEYBOARD_URN, KEYBOARD],
      ] as const) {
        const there = names.filter((name) => listed.has(name));
        expectSame(`what is listed of ${uri}`, there, driver.declares(uri) ? names : []);
      }
    },
  },
  toolsAreOnTheCard,
  {
    id: "P1",
    name: "what reads and what acts are annotated as such",
    level: "basic",
    async run(driver) {
      for (const { name, annotations } of await (await driver.session()).tools()) {
        if (![...MINIMUM, ...POINTER, ...KEYBOARD].includes(name)) continue;
        expectSame(`readOnlyHint of ${name}`, annotations?.readOnlyHint, READS.includes(name));
      }
    },
  },
];

function argumentNames(schema: JsonObject | null | undefined): string[] {
  return Object.keys((schema?.properties ?? {}) as JsonObject).sort();
}
