import type { ToolDefinition } from "../../protocol/tool.js";
import { type BasicCheck, expectSame, expectThat, NotApplicable } from "../check.js";
import type { Driver } from "../driver.js";
import { cardIsTheProtocols, methodsAreDeclared, toolsAreOnTheCard } from "./card.js";
import { skillChecks } from "./skill.js";

/** JSON-RPC's. */
const METHOD_NOT_FOUND = -32601;
const UNKNOWN_TOOL = "no_tool_has_this_name";

/**
 * What can be held against any environment, where nothing is known of what its own tools are for: card, MCP, skill and data
 * plane. They call none of its tools and change no data. X, as none of them is about a computer.
 */
export const ENVIRONMENT_CHECKS: readonly BasicCheck[] = [
  {
    id: "X",
    name: "it says that it lives and can be used",
    level: "basic",
    async run(driver) {
      expectSame("/healthz", await driver.get("/healthz"), { ok: true });
      const ready = (await driver.get("/readyz")) as { ready?: boolean; reasons?: string[] };
      expectThat(ready.ready === true, `it isn't ready: ${JSON.stringify(ready.reasons ?? ready)}`);
    },
  },
  { ...cardIsTheProtocols, id: "X" },
  { ...methodsAreDeclared, id: "X" },
  {
    ...toolsAreOnTheCard,
    id: "X",
    async run(driver) {
      await listedTools(driver);
      await toolsAreOnTheCard.run(driver);
    },
  },
  {
    id: "X",
    name: "its tools are listed over MCP, each once and with a schema of an object",
    level: "basic",
    async run(driver) {
      const tools = await listedTools(driver);
      const names = tools.map(({ name }) => name);
      expectSame(
        "the names that are listed twice",
        names.filter((name, at) => names.indexOf(name) !== at),
        [],
      );
      const odd = tools.filter(({ inputSchema }) => inputSchema?.type !== "object").map(({ name }) => name);
      expectThat(odd.length === 0, `without a schema of an object: ${odd.join(", ")}`);
    },
  },
  {
    id: "X",
    name: "a tool that it doesn't have is refused",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const answer = await session.callAsItIs(UNKNOWN_TOOL, {}).catch((thrown: unknown) => {
        // MCP's own error is an answer as well; a call that was lost or late is none.
        if (typeof (thrown as { code?: unknown }).code !== "number") throw thrown;
        return { isError: true };
      });
      expectThat(answer.isError === true, "it was answered");
    },
  },
  ...skillChecks,
  {
    id: "X",
    name: "what its data plane can't read or doesn't know is refused with JSON-RPC's codes",
    level: "basic",
    async run(driver) {
      for (const [body, code] of [
        ["{", -32700],
        [{ jsonrpc: "2.0", id: 7, method: "data/none", params: {} }, -32601],
      ] as const) {
        const { error } = (await driver.dataPlane(body)) as { error?: { code?: number } };
        expectSame(`the answer to ${JSON.stringify(body)}`, error?.code, code);
      }
    },
  },
];

/** The tools of an environment. One that has none, on its card either, need not serve the method. */
async function listedTools(driver: Driver): Promise<ToolDefinition[]> {
  const session = await driver.session();
  try {
    return await session.tools();
  } catch (thrown) {
    const hasNone = (driver.card.capabilities.tools ?? []).length === 0;
    if (hasNone && (thrown as { code?: unknown }).code === METHOD_NOT_FOUND) throw new NotApplicable("it has no tools");
    throw thrown;
  }
}
