import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { McpClient } from "../../src/mcp/client.js";
import { envFolder, startComputer } from "../harness/computer.js";

/** Longer than the five minutes after which cua-driver ends a session that it was given no call for. */
const IDLE_MS = 330_000;

it("sessions that were idle for 330 s work as before: the framework's, agents' own, and a named one once it is started again", {
  timeout: IDLE_MS + 60_000,
}, async () => {
  using env = envFolder('type = "computer"\ndriver = "cua-driver"\n');
  await using computer = await startComputer(env.folder);
  const agents = await Promise.all([computer.connect(), computer.connect(), computer.connect()]);
  const [used, named, unused] = agents as [McpClient, McpClient, McpClient];
  const frame = (await used.call("computer_screenshot", {})).structuredContent?.frame_id;
  expect((await used.call("get_screen_size", {})).isError).not.toBe(true);
  expect((await named.call("start_session", { session: "mine" })).isError).not.toBe(true);

  await sleep(IDLE_MS);

  const click = { frame_id: frame, x: 10, y: 10, screenshot: true };
  expect((await used.call("computer_click", click)).structuredContent).toMatchObject({ applied: "yes" });
  for (const agent of [used, named, unused]) {
    expect((await agent.call("get_screen_size", {})).structuredContent).toMatchObject({ width: 1280 });
    expect((await agent.call("press_key", { scope: "desktop", key: "shift" })).isError).not.toBe(true);
  }
  // cua-driver's own rule: a named session ends when it is idle, and says how to go on.
  const ended = await named.call("get_screen_size", { session: "mine" });
  expect(ended).toMatchObject({ isError: true, structuredContent: { code: "tool_invocation_failed" } });
  expect((await named.call("start_session", { session: "mine" })).isError).not.toBe(true);
  expect((await named.call("get_screen_size", { session: "mine" })).isError).not.toBe(true);
  expect((await computer.invoke("computer-ready/status")).body.ready).toBe(true);
  expect(await computer.run("echo", "here")).toBe("here\n");
});
