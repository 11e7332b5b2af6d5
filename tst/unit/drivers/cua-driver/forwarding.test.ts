import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { DaemonClient, type Deadlines } from "../../../../drivers/cua-driver/daemon-client.js";
import { type ForwardingOptions, ToolForwarding } from "../../../../drivers/cua-driver/forwarding.js";
import { CallerSessions } from "../../../../drivers/cua-driver/sessions.js";
import { deadlineOf, usesSharedInput } from "../../../../drivers/cua-driver/tool-kinds.js";
import { Caller } from "../../../../src/environment/caller.js";
import type { ToolDefinition } from "../../../../src/protocol/tool.js";
import { FakeCuaDaemon, textResult } from "../../../fakes/cua-daemon.js";

const log = pino({ level: "silent" });

const CLICK: ToolDefinition = { name: "click", inputSchema: { type: "object" }, annotations: { readOnlyHint: false } };
const SIZE: ToolDefinition = {
  name: "get_screen_size",
  inputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
};

async function forwarding(options: Partial<ForwardingOptions> = {}, deadlines: Partial<Deadlines> = {}) {
  const daemon = await FakeCuaDaemon.start();
  const client = new DaemonClient({ socketPath: daemon.socketPath, log, deadlines });
  const caller = new Caller("one");
  onTestFinished(async () => {
    await caller.end();
    client.close();
    await daemon[Symbol.asyncDispose]();
  });
  const tools = new ToolForwarding([SIZE, CLICK], { client, sessions: new CallerSessions(client, log), ...options });
  const { signal } = new AbortController();
  const call = async (name: string, args: object | string = {}) => {
    const text = typeof args === "string" ? args : JSON.stringify(args);
    return (await tools.call(name, text, { caller, signal })).text;
  };
  const unknown = async (name: string) => (await tools.unknown(name, { caller, signal })).text;
  return { daemon, call, unknown };
}

test("arguments arrive as the client wrote them, character by character, on one line", async () => {
  const { daemon, call } = await forwarding();
  daemon.behaviour = () => ({ result: textResult("done") });
  await call("click", '{"x": 1.0,\n "n":9007199254740993,\r\n"z":-0 ,"t":"a\\nb","x":2.50}');
  const [line] = daemon.lines.filter((text) => text.includes('"method":"call"'));
  expect(line).toContain('"args":{"x": 1.0,  "n":9007199254740993, "z":-0 ,"t":"a\\nb","x":2.50},');
});

test("a tool that the daemon doesn't know is the daemon's to refuse", async () => {
  const { daemon, call } = await forwarding();
  daemon.behaviour = ({ name }) => ({ refuse: `there is no ${name}` });
  expect(JSON.parse(await call("clik"))).toMatchObject({
    content: [{ text: "there is no clik" }],
    structuredContent: { code: "tool_invocation_failed", exit_code: 1 },
  });
});

test("a tool that isn't served is answered as one that the daemon doesn't know, and isn't called", async () => {
  const { daemon, unknown } = await forwarding();
  daemon.behaviour = ({ name }) => ({ refuse: `there is no '${name}'` });
  expect(JSON.parse(await unknown('cli"ck'))).toMatchObject({ content: [{ text: "there is no 'cli\"ck'" }] });
  expect(daemon.calls.map(({ name }) => name)).not.toContain('cli"ck');
});

test("a result goes out as the text that it came in as", async () => {
  const { daemon, call } = await forwarding();
  const text = '{"structuredContent":{"scale":1.0},"content":[{"odd":1,"type":"new"}],"isError":false}';
  daemon.behaviour = () => ({ raw: `{"ok":true,"result":${text}}\n` });
  expect(await call("get_screen_size")).toBe(text);
});

test("a refusal of the daemon is a failed result with its exit code, keys in cua-driver's order", async () => {
  const { daemon, call } = await forwarding();
  daemon.behaviour = () => ({ refuse: 'no "such" tool', exitCode: 64 });
  expect(await call("click")).toBe(
    '{"content":[{"text":"no \\"such\\" tool","type":"text"}],"isError":true,' +
      '"structuredContent":{"code":"tool_invocation_failed","exit_code":64}}',
  );
});

test("a failed result without structured content is given the code that `cua-driver mcp` gives it", async () => {
  const { daemon, call } = await forwarding();
  daemon.behaviour = () => ({ result: { ...textResult("Missing field"), isError: true } });
  expect(await call("click")).toBe(
    '{"content":[{"text":"Missing field","type":"text"}],"isError":true,' +
      '"structuredContent":{"code":"tool_invocation_failed"}}',
  );
});

test.each([
  ['{"b":1.0,"error":{"code":1}}', '{"b":1.0,"code":"tool_invocation_failed","error":{"code":1}}'],
  ['{"d":[1]}', '{"code":"tool_invocation_failed","d":[1]}'],
  ['{"a":1}', '{"a":1,"code":"tool_invocation_failed"}'],
  ["{}", '{"code":"tool_invocation_failed"}'],
])("a failed result with %s and no code is given one where cua-driver has it", async (given, expected) => {
  const { daemon, call } = await forwarding();
  const text = (content: string) => `{"content":[],"isError":true,"structuredContent":${content}}`;
  daemon.behaviour = () => ({ raw: `{"ok":true,"result":${text(given)}}\n` });
  expect(await call("click")).toBe(text(expected));
});

test.each(['{"code":"stale"}', '{"refusal":{"code":1}}', '{"status":"refused"}'])(
  "a failed result with %s stays as it is",
  async (content) => {
    const { daemon, call } = await forwarding();
    const text = `{"content":[],"isError":true,"structuredContent":${content}}`;
    daemon.behaviour = () => ({ raw: `{"ok":true,"result":${text}}\n` });
    expect(await call("click")).toBe(text);
  },
);

test.each(["null", "[]", "3", '"text"', "{}", '{"content":{}}'])(
  "%s as a tool's result is internal",
  async (result) => {
    const { daemon, call } = await forwarding();
    daemon.behaviour = () => ({ raw: `{"ok":true,"result":${result}}\n` });
    await expect(call("click")).rejects.toMatchObject({ code: "internal", applied: "unknown" });
  },
);

test("only calls that use the shared input take a turn, and their answer is the turn's", async () => {
  const turns: string[] = [];
  const { daemon, call } = await forwarding({
    turn: async (call, send) => {
      turns.push(String(call.caller.session));
      const sent = send();
      await sent.settled;
      return sent.reply;
    },
  });
  await call("get_screen_size", { scope: "desktop" });
  await call("click", { pid: 1, x: 1, y: 1 });
  expect(turns).toEqual([]);
  expect(JSON.parse(await call("click", { scope: "desktop", x: 1, y: 1 }))).toEqual(
    textResult('click {"scope":"desktop","x":1,"y":1}'),
  );
  expect(turns).toEqual(["one"]);
  expect(daemon.calls).toHaveLength(3);
});

test("a call that is refused its turn isn't sent", async () => {
  const { daemon, call } = await forwarding({ turn: () => Promise.reject(new Error("busy")) });
  await expect(call("click", { delivery_mode: "foreground", pid: 1 })).rejects.toThrow("busy");
  expect(daemon.calls).toHaveLength(0);
});

test("input counts as delivered when it was or may have been, and not when it was refused or only read", async () => {
  const delivered: unknown[] = [];
  const { daemon, call } = await forwarding({ inputDelivered: ({ caller }) => delivered.push(caller.session) });
  await call("get_screen_size");
  expect(delivered).toEqual([]);
  await call("click");
  expect(delivered).toHaveLength(1);
  daemon.behaviour = () => ({ refuse: "no" });
  await call("click");
  expect(delivered).toHaveLength(1);
  daemon.behaviour = () => "drop";
  await expect(call("click")).rejects.toMatchObject({ code: "delivery_failed" });
  expect(delivered).toHaveLength(2);
  await daemon.die();
  await expect(call("click")).rejects.toMatchObject({ code: "device_unavailable" });
  expect(delivered).toHaveLength(2);
});

test("a text that takes longer to type than a call may take is refused before anything is sent, in a batch too", async () => {
  const { daemon, call } = await forwarding();
  const text = "é".repeat(9_600);
  const halves = [text.slice(4_800), text.slice(4_700)].map((half) => ({ tool: "type_text", args: { text: half } }));
  for (const [tool, args] of [
    ["click", { scope: "desktop", text }],
    ["run_steps", { foreground_fallback: true, steps: halves }],
  ] as const) {
    await expect(call(tool, args)).rejects.toMatchObject({ code: "invalid_argument", applied: "no" });
  }
  expect(daemon.calls).toHaveLength(0);
  await call("click", { scope: "desktop", text: text.slice(100) });
  expect(daemon.calls).toHaveLength(1);
});

test("a call has its tool's deadline", async () => {
  const { daemon, call } = await forwarding({}, { call: 60_000, capture: 40 });
  daemon.behaviour = () => "hang";
  await expect(call("get_screen_size")).rejects.toMatchObject({ code: "timeout", applied: "no" });
});

test("a capture that is told how long it may take has that long on top, below the longest deadline", () => {
  const deadlines = { call: 110_000, capture: 15_000, metadata: 1, control: 1 };
  expect(deadlineOf("get_window_state", {}, deadlines)).toBe(15_000);
  expect(deadlineOf("get_window_state", { timeout_ms: 30_000 }, deadlines)).toBe(45_000);
  expect(deadlineOf("get_window_state", { timeout_ms: 120_000 }, deadlines)).toBe(110_000);
  expect(deadlineOf("get_window_state", { timeout_ms: "long" }, deadlines)).toBe(15_000);
  expect(deadlineOf("run_script", { timeout_ms: 1 }, deadlines)).toBe(110_000);
});

test.each([
  ["click", { scope: "desktop", x: 1, y: 1 }, true],
  ["click", { target: { kind: "desktop", display_id: "primary" } }, true],
  ["click", { pid: 1, delivery_mode: "foreground" }, true],
  ["click", { pid: 1, window_id: 2, scope: "desktop", x: 1, y: 1 }, false],
  ["click", { pid: 1, element_token: "s1:1" }, false],
  ["type_text", { text: "scope desktop foreground", pid: 1 }, false],
  ["move_cursor", { x: 1, y: 1 }, false],
  ["move_cursor", { x: 1, y: 1, scope: "desktop" }, true],
  ["bring_to_front", { pid: 1 }, true],
  ["replay_trajectory", { dir: "/x" }, true],
  ["browser_dialog", { action: "accept", delivery_mode: "foreground" }, true],
  ["run_steps", { steps: [{ tool: "click", args: { pid: 1 } }] }, false],
  ["run_steps", { steps: [{ tool: "click", args: { pid: 1 } }], foreground_fallback: true }, true],
  ["run_steps", { steps: [{ tool: "click", args: { scope: "desktop", x: 1, y: 1 } }] }, true],
  ["run_steps", { steps: [null, 3, { args: [] }], delivery_mode: "foreground" }, true],
  ["run_steps", { steps: "not a list" }, false],
  ["run_script", { script: "return 1" }, false],
  ["run_script", { script: 'await cua.call("click", {scope: "desktop"})' }, true],
  ["launch_app", { name: "thunar" }, false],
])("%s %j uses the shared input: %s", (name, args, shared) => {
  expect(usesSharedInput({ name, inputSchema: {}, annotations: { readOnlyHint: false } }, args)).toBe(shared);
  expect(usesSharedInput({ name, inputSchema: {}, annotations: { readOnlyHint: true } }, args)).toBe(false);
});
