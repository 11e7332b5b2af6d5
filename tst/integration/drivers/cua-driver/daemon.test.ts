import { readdirSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type CallOptions, DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { verifyExecutable } from "../../../../drivers/cua-driver/install.js";
import { digestTool, listedTools, toolDifferences } from "../../../../drivers/cua-driver/pin-differences.js";
import { CallerSessions } from "../../../../drivers/cua-driver/sessions.js";
import { Caller } from "../../../../src/environment/caller.js";
import { SetupError } from "../../../../src/errors.js";
import type { JsonObject } from "../../../../src/protocol/tool.js";
import { RealDaemon } from "./real.js";

const log = pino({ level: "silent" });
const READ = { reads: true };
const INPUT = { reads: false };
let daemon: RealDaemon;
let sessions: CallerSessions;

beforeAll(async () => {
  daemon = await RealDaemon.start();
  sessions = new CallerSessions(daemon.client, log);
});

afterAll(() => daemon?.[Symbol.asyncDispose]());

function send(caller: Caller, tool: string, args: JsonObject, options: CallOptions = READ) {
  return sessions.of(caller).call(tool, args, options);
}

async function structured(caller: Caller, tool: string, args: JsonObject = {}): Promise<JsonObject> {
  const reply = await send(caller, tool, args).reply;
  if (!reply.ok) throw new Error(reply.error);
  return (reply.value as { structuredContent: JsonObject }).structuredContent;
}

async function noSessionsLeft(): Promise<void> {
  await vi.waitFor(async () => expect(await daemon.client.sessionsList()).toEqual([]));
}

test("a session that one caller starts isn't shown to another, and ends with its caller", async () => {
  const [one, two] = [new Caller("one"), new Caller("two")];
  await structured(one, "start_session", { session: "private" });
  expect((await structured(one, "list_sessions")).sessions).toMatchObject([{ session: "private" }]);
  expect(await structured(two, "list_sessions")).toMatchObject({ sessions: [] });
  expect((await daemon.client.sessionsList()).map(({ session }) => session)).toContain("private");
  await one.end();
  await vi.waitFor(async () =>
    expect((await daemon.client.sessionsList()).map(({ session }) => session)).not.toContain("private"),
  );
  await two.end();
  await noSessionsLeft();
});

test("the daemon that runs lists the tools of the pin", async () => {
  const tools = listedTools(await daemon.client.list()).map(digestTool);
  expect(tools).toHaveLength(66);
  expect(toolDifferences(daemon.pin.tools, tools)).toEqual([]);
});

test("the skill's files are those of its resources", () => {
  const { skillPack, resources } = daemon.served;
  expect(skillPack).toHaveLength(9);
  for (const { path, text } of skillPack) {
    expect(resources.find(({ entry }) => entry.uri === `skill://cua-driver/${path}`)?.text).toBe(text);
  }
});

test("the binary of the process that runs is the pinned one", async () => {
  await verifyExecutable(`/proc/${daemon.pid}/exe`, daemon.pin);
  await expect(verifyExecutable("/proc/self/exe", daemon.pin)).rejects.toThrow(SetupError);
});

test("a caller is to the daemon what a client of `cua-driver mcp` is", async () => {
  const caller = new Caller("one");
  await send(caller, "get_screen_size", {}).reply;
  expect(await structured(caller, "get_session")).toMatchObject({
    client_kind: "mcp",
    transport: "mcp_stdio",
    implicit: true,
    session: null,
  });
  await caller.end();
});

test("a start_session that its caller cancelled leaves no session when the caller ends", async () => {
  for (let n = 0; n < 20; n += 1) {
    const caller = new Caller(String(n));
    await send(caller, "get_screen_size", {}).reply;
    const cancel = new AbortController();
    const { reply } = send(caller, "start_session", { session: `leak-${n}` }, { ...INPUT, signal: cancel.signal });
    // At another moment each time: before it is written, on its way, or when it is answered.
    for (let turn = 0; turn < n % 4; turn += 1) await setImmediate();
    cancel.abort();
    await reply.catch(() => {});
    await caller.end();
  }
  await noSessionsLeft();
});

test("100 callers that come and go leave no session at the daemon and no descriptor with us", async () => {
  await send(new Caller("warm"), "get_screen_size", {}).reply;
  const descriptors = () => readdirSync("/proc/self/fd").length;
  // The connection that is opened ahead of the next call is there by then.
  await setImmediate();
  await setImmediate();
  const before = descriptors();
  const callers = Array.from({ length: 100 }, (_, n) => new Caller(String(n)));
  await Promise.all(callers.map((caller) => structured(caller, "start_session", { session: `s-${caller.session}` })));
  expect(await daemon.client.sessionsList()).toHaveLength(101);
  await Promise.all(callers.map((caller) => caller.end()));
  await vi.waitFor(async () => expect(await daemon.client.sessionsList()).toHaveLength(1));
  await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
});

test("cancelled typing goes on, settles when it is done, and reads are answered meanwhile", async () => {
  const caller = new Caller("typist");
  await send(caller, "get_screen_size", {}).reply;
  const cancel = new AbortController();
  const text = "x".repeat(200);
  const typing = send(caller, "type_text", { scope: "desktop", text }, { ...INPUT, signal: cancel.signal });
  await daemon.client.metadata();
  cancel.abort();
  await expect(typing.reply).rejects.toMatchObject({ code: "delivery_failed", applied: "unknown" });
  const start = performance.now();
  await send(caller, "get_screen_size", {}).reply;
  const read = performance.now() - start;
  await typing.settled;
  const typed = performance.now() - start;
  // 200 characters take the daemon some two seconds.
  expect(typed).toBeGreaterThan(1_000);
  expect(read).toBeLessThan(typed / 4);
  await caller.end();
});

test("calls from 16 callers at once each get their own answer", async () => {
  const callers = Array.from({ length: 16 }, (_, n) => new Caller(String(n)));
  await Promise.all(
    callers.map(async (caller) => {
      for (let n = 0; n < 20; n += 1) {
        const value = `${caller.session}/${n}`;
        const answer = await structured(caller, "run_script", { script: `return ${JSON.stringify(value)}` });
        expect(answer.value).toBe(value);
      }
    }),
  );
  await Promise.all(callers.map((caller) => caller.end()));
});

test("an answer of some megabytes arrives whole", async () => {
  const caller = new Caller("big");
  const answer = await structured(caller, "run_script", { script: 'return "é✅x".repeat(500_000)' });
  expect(answer.value === "é✅x".repeat(500_000)).toBe(true);
  await caller.end();
});

test("input that a killed daemon had read is delivery_failed, later calls device_unavailable, and its restart brings a new session", async () => {
  const caller = new Caller("survivor");
  await send(caller, "get_screen_size", {}).reply;
  const [session, pid] = [sessions.of(caller), daemon.pid];
  const first = session.id;
  const typing = send(caller, "type_text", { scope: "desktop", text: "y".repeat(300) }, INPUT);
  await daemon.client.metadata();
  daemon.kill();
  await expect(typing.reply).rejects.toMatchObject({ code: "delivery_failed", applied: "unknown" });
  await vi.waitFor(() => expect(daemon.client.metadata()).rejects.toMatchObject({ code: "device_unavailable" }));
  await expect(send(caller, "click", { scope: "desktop", x: 1, y: 1 }, INPUT).reply).rejects.toMatchObject({
    code: "device_unavailable",
    applied: "no",
  });
  await daemon.run();
  expect(daemon.pid).not.toBe(pid);
  expect(await send(caller, "get_screen_size", {}).reply).toMatchObject({ ok: true });
  expect(session.id).not.toBe(first);
  expect(session.lastEnd).toBe("the daemon was restarted");
  await caller.end();
  await noSessionsLeft();
});

test("a daemon that hangs misses deadlines, applied no for a read and unknown for input, and goes on when it wakes", async () => {
  const missed: string[] = [];
  const client = new DaemonClient({
    socketPath: daemon.socketPath,
    log,
    deadlines: { call: 300, metadata: 300 },
    onDeadline: (what) => missed.push(what),
  });
  await client.metadata();
  const pid = client.knownPid ?? 0;
  process.kill(pid, "SIGSTOP");
  try {
    const calls = [client.call("get_screen_size", {}, READ), client.call("click", {}, INPUT)];
    await expect(calls[0]?.reply).rejects.toMatchObject({ code: "timeout", applied: "no" });
    await expect(calls[1]?.reply).rejects.toMatchObject({ code: "timeout", applied: "unknown" });
    await expect(client.metadata()).rejects.toMatchObject({ code: "timeout", applied: "no" });
    expect(missed).toEqual(["get_screen_size", "click", "metadata"]);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  expect(await client.call("get_screen_size", {}, { reads: true, deadlineMs: 5_000 }).reply).toMatchObject({
    ok: true,
  });
  client.close();
});
