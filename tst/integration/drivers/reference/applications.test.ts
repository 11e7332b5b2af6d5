import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../../../src/mcp/client.js";
import { type Computer, envFolder, startComputer } from "../../../harness/computer.js";
import { startEntry, type TextField } from "../../../harness/text-fields.js";
import { until } from "../../../harness/until.js";

const env = envFolder('type = "computer"\ndriver = "reference"\n');
let computer: Computer;
let agent: McpClient;
let field: TextField;
beforeAll(async () => {
  computer = await startComputer(env.folder);
  agent = await computer.connect();
  field = await startEntry(computer, "gtk-entry");
  await agent.call("computer_screenshot", {});
});
afterAll(async () => {
  await field?.[Symbol.asyncDispose]();
  await computer?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});

async function click(args: Record<string, unknown>): Promise<void> {
  const [left, top] = field.seen().view ?? [0, 0];
  const result = await agent.call("computer_click", { x: left + 8, y: top + 8, ...args } as never);
  if (result.isError) throw new Error(JSON.stringify(result.structuredContent));
}

describe("in a GTK text view, on a desk with its window manager", () => {
  it.each([
    [2, "first"],
    [3, "first line"],
  ])("%i clicks select %j", async (count, selected) => {
    await click({ count });
    await until(
      () => field.seen().selected,
      (seen) => seen === selected,
      { what: `"${selected}"` },
    );
    // So that the next ones aren't taken for more of these.
    await new Promise((resolve) => setTimeout(resolve, 600));
  });

  it.each([
    ["left", 1, ["Alt"]],
    ["middle", 2, []],
    ["back", 8, []],
    ["forward", 9, []],
    ["left", 1, ["Meta"]],
    ["left", 1, ["Control", "Alt"]],
  ])("%s arrives as button %i with %j, and not at the window manager", async (button, number, modifiers) => {
    const before = field.seen().clicks?.length ?? 0;
    await click({ button, modifiers });
    const { clicks = [] } = await until(
      () => field.seen(),
      (seen) => (seen.clicks?.length ?? 0) > before,
      { what: "a click" },
    );
    expect(clicks.at(-1)?.[0]).toBe(number);
  });
});
