import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../../../src/mcp/client.js";
import type { CallToolResult } from "../../../../src/protocol/tool.js";
import { type Computer, startComputer } from "../../../harness/computer.js";
import { askCuaMcp } from "../../../harness/cua-mcp.js";
import { until } from "../../../harness/until.js";

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
  window_id: number;
  pid: number;
  title: string;
  app_name: string;
}

async function call(name: string, args: object = {}, client = agent): Promise<CallToolResult> {
  return client.call(name, args as Record<string, unknown>);
}

async function windows(): Promise<Window[]> {
  return (await call("list_windows")).structuredContent?.windows as Window[];
}

describe("a desk whose driver is cua-driver", () => {
  it("lists cua-driver's 66 tools exactly as its own MCP server does, beside our seven", async () => {
    const [theirs] = (await askCuaMcp(computer, [{ method: "tools/list" }])) as [{ tools: { name: string }[] }];
    const ours = await agent.tools();
    expect(theirs.tools).toHaveLength(66);
    expect(ours).toHaveLength(66 + 7);
    const own = ours.filter((tool) => tool.name.startsWith("computer_"));
    expect(own.map((tool) => tool.name)).toEqual([
      "computer_screenshot",
      "computer_click",
      "computer_drag",
      "computer_scroll",
      "computer_type",
      "computer_key",
      "computer_wait",
    ]);
    const forwarded = ours.filter((tool) => !own.includes(tool));
    expect(JSON.stringify(forwarded)).toBe(JSON.stringify(theirs.tools));
  });

  it("answers a call that fails exactly as cua-driver's own MCP server does", async () => {
    const calls = [
      { name: "click", arguments: { x: "nowhere" } },
      { name: "end_session", arguments: { session: "never-was" } },
      { name: "get_window_state", arguments: { pid: 1, window_id: 1 } },
      { name: "press_key", arguments: { scope: "desktop", key: "é" } },
    ];
    const theirs = await askCuaMcp(
      computer,
      calls.map((params) => ({ method: "tools/call", params })),
    );
    for (const [index, { name, arguments: args }] of calls.entries()) {
      expect(JSON.stringify(await call(name, args)), name).toBe(JSON.stringify(theirs[index]));
    }
    expect(theirs[0]).toMatchObject({ isError: true, structuredContent: { code: "tool_invocation_failed" } });
  });

  it("lets an agent open a file manager, find an element by its token, click it and see the title change", async () => {
    const home = (await computer.run("sh", "-c", "cd && basename $PWD")).trim();
    const first = await until(windows, (all) => all.some((each) => each.title.startsWith(`${home} `)), {
      ms: 20_000,
      what: "a window of Thunar in the session user's home",
    });
    // The argument that happens to be called `name` arrives: without it, launch_app refuses.
    const launched = await call("launch_app", { name: "thunar" });
    expect(launched.isError, JSON.stringify(launched.content)).not.toBe(true);
    const opened = await until(windows, (all) => all.length > first.length || all.length > 0, { ms: 20_000 });
    const window = opened.find((each) => each.title.startsWith(`${home} `)) as Window;
    const { pid, window_id } = window;
    const state = await until(
      () => call("get_window_state", { pid, window_id }),
      (seen) => /Open Parent/.test(JSON.stringify(seen.structuredContent)),
      { ms: 20_000, every: 200, what: "an element Open Parent in Thunar's accessibility tree" },
    );
    const token = tokenOf(state, "Open Parent");
    expect(token).toMatch(/^s[0-9a-f]+:\d+$/);
    const clicked = await call("click", { pid, window_id, element_token: token });
    expect(clicked.isError, JSON.stringify(clicked)).not.toBe(true);
    await until(windows, (all) => all.some((each) => each.window_id === window_id && /^home /.test(each.title)), {
      ms: 10_000,
      what: "the window's title after Open Parent",
    });
  });

  it("keeps each MCP session's cua-driver session from the others, and ends it with the MCP session", async () => {
    const one = await computer.connect();
    const other = await computer.connect();
    const owners = async (client: McpClient) => {
      const listed = await call("list_sessions", {}, client);
      return JSON.stringify(listed.structuredContent ?? listed.content);
    };
    await call("start_session", { session: "mine-alone" }, one);
    expect(await owners(one)).toContain("mine-alone");
    expect(await owners(other)).not.toContain("mine-alone");
    await one.close();
    await until(
      async () => (await call("get_session", { session: "mine-alone" }, other)).content,
      (content) => !JSON.stringify(content).includes('"active":true'),
      { what: "the end of the named session" },
    );
    const live = JSON.parse(await computer.run("python3", "-c", SESSIONS_LIST, computer.socket)) as {
      result: { sessions: { session: string | null }[] };
    };
    expect(live.result.sessions.map((each) => each.session)).not.toContain("mine-alone");
  });
});

/** Asks the daemon itself, over its socket, for its live sessions. */
const SESSIONS_LIST = `
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'{"method":"sessions_list"}\\n')
b = b""
while not b.endswith(b"\\n"): b += s.recv(65536)
print(b.decode())`;

/** The token of the element that is labelled so: a row `[N] … "label"` of the tree, in the snapshot that it is of. */
function tokenOf(state: CallToolResult, label: string): string | undefined {
  const { snapshot_id, tree_markdown } = state.structuredContent as { snapshot_id: string; tree_markdown: string };
  const row = tree_markdown.split("\n").find((line) => line.includes(`"${label}"`));
  const index = row === undefined ? undefined : /\[(\d+)\]/.exec(row)?.[1];
  return index === undefined ? undefined : `${snapshot_id}:${index}`;
}
