import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { DaemonClient, type Deadlines } from "../../../../drivers/cua-driver/daemon-client.js";
import { type ForwardingOptions, forwardTools } from "../../../../drivers/cua-driver/forwarding.js";
import { CallerSessions } from "../../../../drivers/cua-driver/sessions.js";
import { deadlineOf, usesSharedInput } from "../../../../drivers/cua-driver/tool-kinds.js";
import { Caller } from "../../../../src/environment/caller.js";
import type { ToolContext } from "../../../../src/environment/context.js";
import { RawJson } from "../../../../src/protocol/raw-json.js";
import type { ToolDefinition } from "../../../../src/protocol/tool.js";
import { FakeCuaDaemon, textResult } from "../../../fakes/cua-daemon.js";

const log = pino({ level: "silent" });

const CLICK: ToolDefinition = { name: "click", inputSchema: { type: "object" }, annotations: { readOnlyHint: false } };
const SIZE: ToolDefinition = {
  risk: { class: "r0" },
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
  const tools = forwardTools([SIZE, CLICK], { client, sessions: new CallerSessions(client, log), ...options });
  const call = async (name: string, args = {}, signal = new AbortController().signal) => {
    const tool = tools.find(({ definition }) => definition.name === name);
    const result = await tool?.call(args, contextOf(caller, name, signal));
    expect(result).toBeInstanceOf(RawJson);
    return (result as RawJson).text;
  };
  return { daemon, tools, call };
}

/** What forwarding reads of a call's context. */
function contextOf(caller: Caller, tool: string, signal: AbortSignal): ToolContext {
  const context: Partial<ToolContext> = { caller, role: undefined, tool, arguments: {}, callId: "1", signal };
  return context as ToolContext;
}

test("a tool is listed with the definition that was given, keys that we don't know included", async () => {
  const { tools } = await forwarding();
  expect(tools.map(({ definition }) => definition)).toEqual([SIZE, CLICK]);
  expect(Object.keys(tools[0]?.definition ?? {})[0]).toBe("risk");
  expect(tools.every(({ forwarded, hiddenByDefault }) => forwarded && !hiddenByDefault)).toBe(true);
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

test("a failed result with structured content stays as it is", async () => {
  const { daemon, call } = await forwarding();
  const text = '{"content":[],"isError":true,"structuredContent":{"code":"stale"}}';
  daemon.behaviour = () => ({ raw: `{"ok":true,"result":${text}}\n` });
  expect(await call("click")).toBe(text);
});

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
    turn: async (tool, args, context, send) => {
      turns.push(`${tool} ${JSON.stringify(args)} ${context.tool}`);
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
  expect(turns).toEqual(['click {"scope":"desktop","x":1,"y":1} click']);
  expect(daemon.calls).toHaveLength(3);
});

test("a call that is refused its turn isn't sent", async () => {
  const { daemon, call } = await forwarding({ turn: () => Promise.reject(new Error("busy")) });
  await expect(call("click", { delivery_mode: "foreground", pid: 1 })).rejects.toThrow("busy");
  expect(daemon.calls).toHaveLength(0);
});

test("input counts as delivered when it was or may have been, and not when it was refused or only read", async () => {
  const delivered: string[] = [];
  const { daemon, call } = await forwarding({ inputDelivered: (tool) => delivered.push(tool) });
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
