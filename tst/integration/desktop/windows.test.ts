import { afterAll, beforeAll, expect, it } from "vitest";
import type { McpClient } from "../../../src/mcp/client.js";
import { type Computer, startComputer } from "../../harness/computer.js";
import { until } from "../../harness/until.js";

let computer: Computer;
let agent: McpClient;
beforeAll(async () => {
  computer = await startComputer();
  agent = await computer.connect();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

interface Window {
  app_name: string;
  is_on_screen: boolean;
  bounds: { x: number; y: number; width: number; height: number };
}

async function filesWindow(): Promise<Window | undefined> {
  const { structuredContent } = await agent.call("list_windows", {});
  const { windows } = structuredContent as unknown as { windows: Window[] };
  return windows.find((window) => /thunar/i.test(window.app_name));
}

it.each(["middle", "right"])("a window that was minimised is found again under the %s button", async (button) => {
  const shown = await until(filesWindow, (window) => window?.is_on_screen === true, { ms: 20_000 });
  const { x, y, width } = (shown as Window).bounds;
  await agent.call("computer_screenshot", {});
  // The third button from the right of its title.
  await agent.call("computer_click", { x: x + width - 42, y: y - 10 });
  await until(filesWindow, (window) => window?.is_on_screen === false, { what: "the window was minimised" });
  await agent.call("computer_click", { x: 40, y: 40, button });
  // A menu of the window manager's takes keys. In the menu under the right button the list is the last entry.
  const keys = button === "middle" ? ["ArrowDown", "Enter"] : ["ArrowUp", "ArrowRight", "Enter"];
  for (const key of keys) await agent.call("computer_key", { keys: [key] });
  const back = await until(filesWindow, (window) => window?.is_on_screen === true, { what: "the window is back" });
  expect(back?.bounds).toEqual(shown?.bounds);
});
