import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StdioServer } from "../../../../drivers/cua-driver/executable.js";
import { forwardTools } from "../../../../drivers/cua-driver/forwarding.js";
import { CallerSessions } from "../../../../drivers/cua-driver/sessions.js";
import { Caller } from "../../../../src/environment/caller.js";
import type { ToolContext } from "../../../../src/environment/context.js";
import type { ForwardedTool } from "../../../../src/environment/served-tool.js";
import type { RawJson } from "../../../../src/protocol/raw-json.js";
import type { JsonObject } from "../../../../src/protocol/tool.js";
import { RealDaemon } from "./real.js";

/** Everything is compared as the JSON text that a client gets from `cua-driver mcp --socket`, on the same daemon. */
let daemon: RealDaemon;
let own: StdioServer;
let tools: ForwardedTool[];
const caller = new Caller("ours");

beforeAll(async () => {
  daemon = await RealDaemon.start();
  own = await daemon.ownServer();
  const sessions = new CallerSessions(daemon.client, pino({ level: "silent" }));
  tools = forwardTools(daemon.served.tools, { client: daemon.client, sessions });
});

afterAll(async () => {
  await caller.end();
  await own?.close();
  await daemon?.[Symbol.asyncDispose]();
});

async function ours(name: string, args: JsonObject): Promise<string> {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  const context = { caller, signal: new AbortController().signal } as Partial<ToolContext> as ToolContext;
  return ((await tool.call(args, context)) as RawJson).text;
}

test("tools/list is the same text: every tool, key for key, and the keys beside them", async () => {
  const list = { ...daemon.served.listKeys, tools: tools.map(({ definition }) => definition) };
  expect(tools).toHaveLength(66);
  expect(JSON.stringify(list)).toBe(await own.request("tools/list", {}));
});

test("instructions and capabilities are the same", async () => {
  const { instructions, capabilities } = JSON.parse(await own.initialize()) as JsonObject;
  expect(daemon.served).toMatchObject({ instructions, capabilities });
});

test("each resource is listed and read the same", async () => {
  const { resources } = daemon.served;
  expect(JSON.stringify({ resources: resources.map(({ entry }) => entry) })).toBe(
    await own.request("resources/list", {}),
  );
  for (const { entry, text } of resources) {
    const { uri, mimeType } = entry;
    expect(JSON.parse(await own.request("resources/read", { uri }))).toEqual({ contents: [{ uri, mimeType, text }] });
  }
});

test("skills are listed and got the same, and the skill's files are those of its resources", async () => {
  const { skills, skillPack, resources } = daemon.served;
  expect(JSON.stringify({ skills })).toBe(await own.request("skills/list", {}));
  for (const skill of skills) {
    expect(JSON.stringify({ skill })).toBe(await own.request("skills/get", { uri: skill.uri }));
  }
  for (const { path, text } of skillPack) {
    expect(resources.find(({ entry }) => entry.uri === `skill://cua-driver/${path}`)?.text).toBe(text);
  }
});

/** A session's label is one client's alone, so each side has its own, of one length. */
const LABEL = "LABEL";
const sides = { ours: "label-a", theirs: "label-b" };

/** What differs from one call to the next on either side. */
function steady(text: string): string {
  return text.replace(/label-[ab]/g, LABEL).replace(/in \d+ ms|"elapsed_ms":\d+|"capture_id":"[^"]*"/g, "");
}

// In order: a later call may depend on an earlier one.
test.each<[string, JsonObject]>([
  ["get_screen_size", {}],
  ["get_cursor_position", {}],
  ["list_windows", {}],
  ["get_config", {}],
  ["get_session", {}],
  ["list_sessions", {}],
  ["get_guide", {}],
  ["get_screen_size", { bogus: 1 }],
  ["get_screen_size", { session: 5 }],
  ["get_screen_size", { session: "" }],
  ["get_screen_size", { _session_id: "stolen" }],
  ["click", {}],
  ["click", { x: "a" }],
  ["click", { element_token: "s0000000a:11", pid: 1 }],
  ["click", { scope: "desktop", x: 5, y: 5 }],
  ["press_key", { scope: "desktop", key: "é" }],
  ["type_text", {}],
  ["get_window_state", {}],
  ["get_window_state", { pid: 1 }],
  ["zoom", { window_id: 1, x1: 0, y1: 0, x2: 1, y2: 1 }],
  ["launch_app", { name: "no-such-program" }],
  ["launch_app", { name: 5 }],
  ["set_value", { value: 'quotes " and \\ and \u0007 and 😀', pid: 1, window_id: 1 }],
  ["run_steps", { steps: [] }],
  ["run_script", { script: "return {a: 1.5, b: 'é'}" }],
  ["start_session", { session: LABEL }],
  ["get_session_state", { session: LABEL }],
  ["end_session", { session: LABEL }],
  ["get_screen_size", { session: LABEL }],
  ["end_session", {}],
  ["get_screen_size", {}],
  ["start_session", {}],
  ["get_screen_size", {}],
  ["get_desktop_state", {}],
])("%s %j is answered with the same text", async (name, args) => {
  const labelled = (label: string): JsonObject => JSON.parse(JSON.stringify(args).replaceAll(LABEL, label));
  const theirs = await own.request("tools/call", { name, arguments: labelled(sides.theirs) });
  expect(steady(await ours(name, labelled(sides.ours)))).toBe(steady(theirs));
});
