import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../src/mcp/client.js";
import type { CallToolResult, JsonObject } from "../../src/protocol/tool.js";
import { type Computer, startComputer } from "../harness/computer.js";
import { until } from "../harness/until.js";

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

type Window = { pid: number; window_id: number };

async function windows(agent: McpClient): Promise<Window[]> {
  const { structuredContent = {} } = await agent.call("list_windows", {});
  return (structuredContent.windows as Window[]).map(({ pid, window_id }) => ({ pid, window_id }));
}

async function firstWindow(agent: McpClient): Promise<Window> {
  const all = await until(
    () => windows(agent),
    ({ length }) => length > 0,
    { ms: 30_000, what: "a window" },
  );
  return all[0] as Window;
}

/** Reads a window, and answers the token of a button in it that changes nothing. */
async function tokenIn(agent: McpClient, window: Window): Promise<string> {
  const read = async () => {
    const text = JSON.stringify(await agent.call("get_window_state", window));
    const snapshot = /snapshot_id=(s[0-9a-f]{8})/.exec(text)?.[1];
    const row = /\[(\d+)\] push button \\"Normal Size\\"/.exec(text)?.[1];
    return snapshot === undefined || row === undefined ? undefined : `${snapshot}:${row}`;
  };
  return (await until(read, Boolean, { ms: 20_000, every: 100, what: "the button Normal Size" })) as string;
}

const isStale = ({ structuredContent }: CallToolResult) =>
  (structuredContent?.refusal as JsonObject | undefined)?.code === "stale_element_token";

describe("what others do between an agent's read and its click", () => {
  it("leaves the token valid where the framework, and other agents, only look", async () => {
    const [agent, other] = [await computer.connect(), await computer.connect()];
    const window = await firstWindow(agent);
    for (let round = 0; round < 5; round += 1) {
      const token = await tokenIn(agent, window);
      await other.call("computer_screenshot", {});
      await computer.invoke("computer-ready/status");
      await computer.invoke("computer-display/get");
      await other.call("get_desktop_state", {});
      await other.call("list_windows", {});
      const clicked = await agent.call("click", { ...window, element_token: token });
      expect(clicked.isError, JSON.stringify(clicked)).not.toBe(true);
    }
  });

  it("on one window makes each click either that of a read which still holds, or refused as stale", async () => {
    const agents = [await computer.connect(), await computer.connect()];
    const window = await firstWindow(agents[0] as McpClient);
    const outcomes = await Promise.all(
      agents.map(async (agent) => {
        const seen = { done: 0, stale: 0 };
        while (seen.done < 3 && seen.stale < 40) {
          const clicked = await agent.call("click", { ...window, element_token: await tokenIn(agent, window) });
          if (clicked.isError) expect(isStale(clicked), JSON.stringify(clicked)).toBe(true);
          seen[clicked.isError ? "stale" : "done"] += 1;
        }
        return seen;
      }),
    );
    for (const { done } of outcomes) expect(done).toBe(3);
  });

  it("on a window of its own is nothing to the other", async () => {
    const [one, two] = [await computer.connect(), await computer.connect()];
    const first = await firstWindow(one);
    await two.call("launch_app", { name: "thunar" });
    const all = await until(
      () => windows(two),
      ({ length }) => length > 1,
      { ms: 20_000, what: "a second window" },
    );
    const second = all.find(({ window_id }) => window_id !== first.window_id) as Window;
    await Promise.all(
      (
        [
          [one, first],
          [two, second],
        ] as const
      ).map(async ([agent, window]) => {
        for (let round = 0; round < 5; round += 1) {
          const clicked = await agent.call("click", { ...window, element_token: await tokenIn(agent, window) });
          expect(clicked.isError, JSON.stringify(clicked)).not.toBe(true);
        }
      }),
    );
  });
});

describe("32 agents for 60 s", () => {
  it("each get their own answers, sessions and errors, and nothing of another's", async () => {
    const agents = await Promise.all(Array.from({ length: 32 }, () => computer.connect()));
    const deadline = performance.now() + 60_000;
    const counts = await Promise.all(
      agents.map(async (agent, number) => {
        const label = `agent-${number}`;
        await agent.call("start_session", { session: label });
        let calls = 1;
        const said = async (tool: string, args: JsonObject) => {
          calls += 1;
          return await agent.call(tool, args);
        };
        for (let n = 0; performance.now() < deadline; n += 1) {
          const value = `${number}/${n}/${"x".repeat(n % 200)}`;
          const script = await said("run_script", { script: `return ${JSON.stringify(value)}` });
          expect(script.structuredContent?.value).toBe(value);
          const sessions = (await said("list_sessions", {})).structuredContent?.sessions as {
            session: string | null;
          }[];
          expect(sessions.flatMap(({ session }) => session ?? [])).toEqual([label]);
          const wrong = await said(`no_tool_${number}_${n}`, {});
          expect(JSON.stringify(wrong)).toContain(`'no_tool_${number}_${n}'`);
          expect(wrong.isError).toBe(true);
          const size = await said("get_screen_size", { session: label });
          expect(size.structuredContent).toMatchObject({ width: 1280, height: 800 });
          if (n % 10 === number % 10) {
            const shot = await said("computer_screenshot", {});
            const frame = shot.structuredContent?.frame_id;
            const point = await said("computer_click", { frame_id: frame, x: number, y: 799, screenshot: false });
            expect(point.isError, JSON.stringify(point.structuredContent)).not.toBe(true);
          }
        }
        return calls;
      }),
    );
    const all = counts.reduce((sum, count) => sum + count, 0);
    console.log(`32 agents made ${all} calls in 60 s, the slowest of them ${Math.min(...counts)}`);
    expect(Math.min(...counts)).toBeGreaterThan(20);
    expect((await fetch(`${computer.url}/readyz`)).status).toBe(200);
  });
});
