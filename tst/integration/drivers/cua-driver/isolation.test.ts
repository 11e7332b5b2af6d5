import { readdirSync } from "node:fs";
import { pino } from "pino";
import { Client } from "undici";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { CuaDriver } from "../../../../drivers/cua-driver/driver.js";
import { ComputerSettings } from "../../../../src/computer/settings.js";
import type { McpOptions } from "../../../../src/mcp/endpoint.js";
import type { CallToolResult, JsonObject } from "../../../../src/protocol/tool.js";
import { serve } from "../../../fakes/serving.js";
import { until } from "../../../harness/until.js";
import { RealDaemon } from "./real.js";

let daemon: RealDaemon;
beforeAll(async () => {
  daemon = await RealDaemon.start();
});
afterAll(() => daemon?.[Symbol.asyncDispose]());

/** A computer on the daemon, served as `agentenv up` serves one, in this process. */
async function start(options: McpOptions = {}) {
  const settings = ComputerSettings.parse({});
  const driver = new CuaDriver({ session: daemon.session(), settings, log: pino({ level: "silent" }) });
  await driver.prepare();
  const serving = await serve(driver, options);
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= Promise.resolve(serving[Symbol.asyncDispose]()));
  onTestFinished(close);
  return { ...serving, close };
}

/** An MCP session on a connection of its own. */
class Agent {
  readonly #connection: Client;
  #session = "";
  #id = 0;

  private constructor(url: string) {
    this.#connection = new Client(url);
  }

  static async open(url: string): Promise<Agent> {
    const agent = new Agent(url);
    const clientInfo = { name: "agent", version: "1" };
    await agent.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    return agent;
  }

  async ask(method: string, params: object): Promise<{ status: number; text: string }> {
    this.#id += 1;
    const response = await this.#connection.request({
      method: "POST",
      path: "/mcp",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...(this.#session === "" ? {} : { "mcp-session-id": this.#session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }),
    });
    if (method === "initialize") this.#session = String(response.headers["mcp-session-id"]);
    return { status: response.statusCode, text: await response.body.text() };
  }

  async call(name: string, args: JsonObject = {}): Promise<CallToolResult> {
    const { text } = await this.ask("tools/call", { name, arguments: args });
    return (JSON.parse(text) as { result: CallToolResult }).result;
  }

  /** Ends the session as a client does. */
  async delete(): Promise<void> {
    await (
      await this.#connection.request({ method: "DELETE", path: "/mcp", headers: { "mcp-session-id": this.#session } })
    ).body.dump();
  }

  /** Closes the connection under whatever runs on it. */
  async drop(): Promise<void> {
    await this.#connection.destroy();
  }
}

/** Opens so many sessions, each with a session of cua-driver's that it named. */
function openAgents(url: string, count: number, name: string): Promise<Agent[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const agent = await Agent.open(url);
      expect(await agent.call("get_screen_size")).toMatchObject({ structuredContent: { width: 1280 } });
      const started = await agent.call("start_session", { session: `${name}-${n}` });
      expect(started.structuredContent).toMatchObject({ active: true });
      return agent;
    }),
  );
}

const live = async () => (await daemon.client.sessionsList()).length;
const descriptors = () => readdirSync("/proc/self/fd").length;
const listeners = () =>
  Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)]));

test("200 MCP sessions, opened, used and dropped in every way, leave no session at the daemon and nothing with us", async () => {
  const warnings: unknown[] = [];
  const warned = (warning: unknown) => void warnings.push(warning);
  process.on("warning", warned);
  onTestFinished(() => void process.off("warning", warned));
  {
    // Whatever is made once is made before it is counted.
    const warm = await start();
    const [agent] = await openAgents(warm.url, 1, "warm");
    await agent?.delete();
    await agent?.drop();
    await warm.close();
  }
  const before = { live: await live(), descriptors: descriptors(), listeners: listeners() };
  const { url, mcp, close } = await start({ idleMs: 1_500 });

  const deleted = await openAgents(url, 40, "deleted");
  const busy = await openAgents(url, 40, "busy");
  const dropped = await openAgents(url, 40, "dropped");
  expect(await live()).toBeGreaterThanOrEqual(before.live + 120);
  await Promise.all(deleted.map((agent) => agent.delete()));

  // Ended with a call on its way, and with one that would begin another session.
  await Promise.all(
    busy.flatMap((agent, n) => [
      agent.call("start_session", { session: `late-${n}` }).catch(() => {}),
      agent.call("get_desktop_state").catch(() => {}),
      agent.delete(),
    ]),
  );

  // Connections that die, some under a call; the sessions then end once they are idle.
  for (const agent of dropped.slice(20)) agent.call("get_desktop_state").catch(() => {});
  await Promise.all(dropped.map((agent) => agent.drop()));
  const idle = await openAgents(url, 40, "idle");
  await until(
    () => mcp.sessionCount,
    (count) => count === 0,
    { ms: 20_000, what: "the end of the idle sessions" },
  );
  const late = await idle[0]?.ask("tools/list", {});
  expect(late).toMatchObject({ status: 404, text: expect.stringContaining("it was idle for too long") });

  await openAgents(url, 40, "open").then((open) => Promise.all(open.map((agent) => agent.drop())));
  expect(mcp.sessionCount).toBe(40);
  await close();
  await Promise.all([...deleted, ...busy, ...idle].map((agent) => agent.drop()));

  await until(live, (count) => count <= before.live, { ms: 10_000, what: "the end of the sessions at the daemon" });
  await until(descriptors, (count) => count <= before.descriptors, { ms: 5_000, what: "the end of the descriptors" });
  expect(listeners()).toEqual(before.listeners);
  expect(warnings).toEqual([]);
});

test("a session that was deleted says so to a call that comes late", async () => {
  const { url } = await start();
  const [agent] = await openAgents(url, 1, "one");
  await agent?.delete();
  expect(await agent?.ask("tools/list", {})).toMatchObject({
    status: 404,
    text: expect.stringContaining("it has ended, as the caller ended it"),
  });
  await agent?.drop();
});

test("input that others send through forwarded tools counts in others_since_frame, what only reads doesn't", async () => {
  const { url } = await start();
  const [one, two] = (await openAgents(url, 2, "counted")) as [Agent, Agent];
  const others = async () => {
    const { structuredContent } = await one.call("computer_click", { x: 600, y: 500 });
    return structuredContent?.others_since_frame;
  };
  await one.call("computer_screenshot");
  expect(await others()).toBe(0);
  await two.call("get_screen_size");
  await two.call("list_windows");
  await two.call("get_desktop_state");
  await two.call("click", { scope: "desktop", x: 600, y: 500 });
  expect(await others()).toBe(1);
  await one.call("click", { scope: "desktop", x: 600, y: 500 });
  await two.call("click", { scope: "desktop", x: 600, y: 500 });
  await two.call("press_key", { scope: "desktop", key: "shift" });
  expect(await others()).toBe(3);
  await one.call("computer_screenshot");
  expect(await others()).toBe(0);
  for (const agent of [one, two]) {
    await agent.delete();
    await agent.drop();
  }
});
