import { describe, expect, it } from "vitest";
import type { ToolNarrowing } from "../../../src/environment/tool-narrowing.js";
import { SetupError } from "../../../src/errors.js";
import { CARD_PATH } from "../../../src/protocol/card.js";
import { serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";

const ALL = ["far_echo", "order", "refuse", "wait"];

async function open(tools: ToolNarrowing) {
  const serving = await serve(new Shop(), { tools });
  const list = async (role?: string) => {
    const client = await serving.client(role === undefined ? {} : { "agentenv-role": role });
    return (await client.listTools()).tools.map(({ name }) => name).sort();
  };
  const call = async (name: string, role?: string) => {
    const client = await serving.client(role === undefined ? {} : { "agentenv-role": role });
    return await client.callTool({ name, arguments: {} }).then(
      () => "called",
      (thrown: Error) => thrown.message,
    );
  };
  const card = async () => ((await (await fetch(`${serving.url}${CARD_PATH}`)).json()) as Card).capabilities.tools;
  return Object.assign(serving, { list, call, card });
}
interface Card {
  capabilities: { tools: { name: string }[] };
}

async function refusal(tools: ToolNarrowing): Promise<SetupError> {
  try {
    await (await open(tools))[Symbol.asyncDispose]();
  } catch (thrown) {
    if (thrown instanceof SetupError) return thrown;
    throw thrown;
  }
  throw new Error("it wasn't refused");
}

describe("[tools]", () => {
  it.each<[ToolNarrowing, string[]]>([
    [{}, ALL],
    [{ only: ["order", "wait"] }, ["order", "wait"]],
    [{ hide: ["order"] }, ["far_echo", "refuse", "wait"]],
    [{ hide: ["far_*"] }, ["order", "refuse", "wait"]],
    [{ only: ["w*", "order"], hide: ["wait"] }, ["order"]],
  ])("%j leaves %j, in tools/list and on the card, and the rest is unknown", async (tools, left) => {
    await using env = await open(tools);
    expect(await env.list()).toEqual(left);
    const onCard = (await env.card()).map(({ name }) => name);
    expect(onCard.filter((name) => name !== "broken").sort()).toEqual(left);
    for (const name of ALL.filter((each) => !left.includes(each))) {
      expect(await env.call(name)).toContain(`Unknown tool: ${name}`);
    }
  });

  it("narrows what a role sees beyond what all see, and nobody else's", async () => {
    await using env = await open({ hide: ["wait"], roles: { grader: { only: ["refuse", "wait"] }, default: {} } });
    expect(await env.list("grader")).toEqual(["refuse"]);
    expect(await env.list("other")).toEqual(["far_echo", "order", "refuse"]);
    expect(await env.list()).toEqual(["far_echo", "order", "refuse"]);
    expect(await env.call("order", "grader")).toContain("Unknown tool: order");
    expect(await env.call("refuse", "grader")).toBe("called");
    expect(await env.call("order", "other")).toBe("called");
  });

  it("isn't undone by enable-tool", async () => {
    await using env = await open({ hide: ["order"], roles: { grader: { hide: ["refuse"] } } });
    const enable = { role: "*", tools: "*" };
    await fetch(`${env.url}/tools/enable`, { method: "POST", body: JSON.stringify(enable) });
    expect(await env.list()).not.toContain("order");
    expect(await env.list("grader")).not.toContain("refuse");
    expect(await env.call("refuse", "grader")).toContain("Unknown tool: refuse");
  });

  it.each<[ToolNarrowing, string, string | undefined]>([
    [{ hide: ["ordr"] }, 'env.toml: tools.hide: no tool is called "ordr"', 'did you mean "order"?'],
    [{ only: ["fra_*"] }, 'env.toml: tools.only: no tool begins with "fra_"', 'did you mean "far_*"?'],
    [
      { roles: { grader: { only: ["wait", "refus"] } } },
      'env.toml: tools.roles.grader.only: no tool is called "refus"',
      'did you mean "refuse"?',
    ],
    [{ hide: ["something-else"] }, 'no tool is called "something-else"', undefined],
  ])("%j is refused at start, naming the key and the closest tool", async (tools, message, hint) => {
    const error = await refusal(tools);
    expect(error.message).toContain(message);
    if (hint !== undefined) expect(error.hint).toBe(hint);
  });
});
