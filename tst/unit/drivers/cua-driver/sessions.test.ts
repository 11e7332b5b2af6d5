import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { CallerSessions, DaemonSession } from "../../../../drivers/cua-driver/sessions.js";
import { Caller } from "../../../../src/environment/caller.js";
import { FakeCuaDaemon, textResult } from "../../../fakes/cua-daemon.js";

const log = pino({ level: "silent" });
const READ = { reads: true };
const INPUT = { reads: false };

/** `controlMs` is for a daemon that is to be found silent; the others have the time that a busy machine takes. */
async function start({ settleMs, controlMs = 4_000 }: { settleMs?: number; controlMs?: number } = {}) {
  const daemon = await FakeCuaDaemon.start();
  const client = new DaemonClient({ socketPath: daemon.socketPath, log, deadlines: { control: controlMs } });
  onTestFinished(async () => {
    client.close();
    await daemon[Symbol.asyncDispose]();
  });
  return { daemon, client, session: new DaemonSession(client, log, settleMs) };
}

/** The daemon holds calls of this tool until `release` is called. */
function hold(daemon: FakeCuaDaemon, tool: string) {
  let release!: () => void;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  daemon.behaviour = async ({ name }) => {
    if (name === tool) await released;
    return { result: textResult("done") };
  };
  return release;
}

test("a session begins before its first call is sent, and lasts for the next", async () => {
  const { daemon, session } = await start();
  expect(session.id).toBeUndefined();
  await session.call("a", {}, READ).reply;
  await session.call("b", { session: "mine" }, READ).reply;
  expect(session.id).toMatch(/^mcp-\d+-\d+$/);
  expect(daemon.requests.map(({ method, session_id }) => [method, session_id])).toEqual([
    ["session_begin", session.id],
    ["call", session.id],
    ["call", session.id],
  ]);
  expect([...daemon.sessions]).toEqual([session.id]);
});

test("first calls that come at once begin one session", async () => {
  const { daemon, session } = await start();
  await Promise.all(Array.from({ length: 20 }, () => session.call("a", {}, READ).reply));
  expect(daemon.requests.filter(({ method }) => method === "session_begin")).toHaveLength(1);
  expect(new Set(daemon.calls.map(({ session_id }) => session_id))).toEqual(new Set([session.id]));
});

test("each caller has a session of its own, which ends with the caller", async () => {
  const { daemon, client } = await start();
  const sessions = new CallerSessions(client, log);
  const [one, two] = [new Caller("one"), new Caller("two")];
  await Promise.all([one, two].map((caller) => sessions.of(caller).call("a", {}, READ).reply));
  const ids = [one, two].map((caller) => sessions.of(caller).id);
  expect(new Set(ids).size).toBe(2);
  await one.end();
  await vi.waitFor(() => expect(daemon.ended).toEqual([ids[0]]));
  expect([...daemon.sessions]).toEqual([ids[1]]);
});

test("a caller that never called has no session at the daemon to end", async () => {
  const { daemon, client } = await start();
  const caller = new Caller("idle");
  new CallerSessions(client, log).of(caller);
  await caller.end();
  expect(daemon.requests).toHaveLength(0);
});

test("a call after the end is refused, saying why the session ended, and isn't sent", async () => {
  const { daemon, session } = await start();
  await session.call("a", {}, READ).reply;
  await session.end();
  await expect(session.call("b", {}, INPUT).reply).rejects.toMatchObject({
    code: "target_unavailable",
    applied: "no",
    message: expect.stringContaining("its session has ended, as the caller ended it"),
  });
  expect(daemon.calls.map(({ name }) => name)).toEqual(["a"]);
});

test.each([
  ["caller", "the caller ended it"],
  ["idle", "it was idle for too long"],
  ["stopping", "the server is stopping"],
] as const)("a caller that ended (%s) has its calls refused with why", async (why, words) => {
  const { daemon, client } = await start();
  const caller = new Caller("one");
  const session = new CallerSessions(client, log).of(caller);
  await session.call("a", {}, READ).reply;
  await caller.end(why);
  expect(session.lastEnd).toBe(words);
  await expect(session.call("b", {}, INPUT).reply).rejects.toMatchObject({ message: expect.stringContaining(words) });
  await vi.waitFor(() => expect(daemon.sessions.size).toBe(0));
});

test("the control connection is closed only after the calls in flight have settled, a cancelled one too", async () => {
  const { daemon, client, session } = await start();
  const release = hold(daemon, "start_session");
  const cancel = new AbortController();
  const call = session.call("start_session", { session: "x" }, { reads: false, signal: cancel.signal });
  call.reply.catch(() => {});
  await vi.waitFor(() => expect(daemon.calls).toHaveLength(1));
  cancel.abort();
  let ended = false;
  const end = session.end().then(() => {
    ended = true;
  });
  // Long enough that a control connection closed too early would have been noticed.
  await client.call("get_screen_size", {}, READ).reply;
  expect(ended).toBe(false);
  expect(daemon.sessions.size).toBe(1);
  release();
  await end;
  await vi.waitFor(() => expect(daemon.ended).toHaveLength(1));
  expect(daemon.requests.map(({ method }) => method)).not.toContain("session_end");
});

test("a call that doesn't settle in time doesn't hold the end, and what it began is ended once it does", async () => {
  const { daemon, session } = await start({ settleMs: 30 });
  const release = hold(daemon, "start_session");
  const call = session.call("start_session", { session: "x" }, INPUT);
  await vi.waitFor(() => expect(daemon.calls).toHaveLength(1));
  const id = session.id;
  await session.end();
  await vi.waitFor(() => expect(daemon.ended).toEqual([id]));
  release();
  await call.reply;
  await vi.waitFor(() =>
    expect(daemon.requests.filter(({ method }) => method === "session_end")).toMatchObject([{ session_id: id }]),
  );
});

test("after the daemon was restarted the next call begins another session under another id", async () => {
  const { daemon, client, session } = await start();
  await client.metadata();
  await session.call("a", {}, READ).reply;
  const first = session.id;
  await daemon.die();
  await vi.waitFor(() => expect(session.id).toBeUndefined());
  expect(session.lastEnd).toBe("its connection is gone");
  await expect(session.call("b", {}, INPUT).reply).rejects.toMatchObject({
    code: "device_unavailable",
    applied: "no",
    message: expect.stringMatching(/can't be reached; the last one ended, as its connection is gone$/),
  });
  await daemon.listen();
  daemon.metadata = { ...daemon.metadata, pid: 4343 };
  await client.metadata();
  const { begin } = daemon;
  daemon.begin = { refuse: "no" };
  await expect(session.call("b", {}, INPUT).reply).rejects.toMatchObject({
    message: expect.stringMatching(/it refused the session; the last one ended, as the daemon was restarted$/),
  });
  daemon.begin = begin;
  await session.call("c", {}, READ).reply;
  expect(session.id).not.toBe(first);
  expect(session.lastEnd).toBe("the daemon was restarted");
  expect(daemon.calls.map(({ name }) => name)).toEqual(["a", "c"]);
});

test.each([
  ["refuses the session", { refuse: "no" }],
  ["doesn't answer", "hang"],
  ["closes the connection", "drop"],
  ["answers with garbage", { raw: "garbage\n" }],
  ["answers without end", { raw: "x".repeat(10_000) }],
] as const)("a daemon that %s when a session begins gets no call", async (_, answer) => {
  const { daemon, session } = await start({ controlMs: 200 });
  daemon.begin = answer;
  await expect(session.call("click", {}, INPUT).reply).rejects.toMatchObject({
    code: "device_unavailable",
    applied: "no",
  });
  expect(daemon.calls).toHaveLength(0);
  daemon.begin = { result: { session_begin: true } };
  expect(await session.call("click", {}, INPUT).reply).toMatchObject({ ok: true });
  await session.end();
  await vi.waitFor(() => expect(daemon.open).toBe(1));
});

test("a call that is cancelled while its session begins isn't sent", async () => {
  const { daemon, session } = await start();
  const cancel = new AbortController();
  const { reply, settled } = session.call("click", {}, { reads: false, signal: cancel.signal });
  cancel.abort();
  await expect(reply).rejects.toMatchObject({ code: "delivery_failed", applied: "no" });
  await settled;
  expect(daemon.calls).toHaveLength(0);
});

test("a session that is ended while it begins is closed again", async () => {
  const { daemon, session } = await start();
  const call = session.call("a", {}, READ);
  await session.end();
  expect(await call.reply).toMatchObject({ ok: true });
  await vi.waitFor(() => expect(daemon.ended).toHaveLength(1));
  expect(daemon.sessions.size).toBe(0);
});

test("200 callers that come and go leave no connection behind", async () => {
  const { daemon, client } = await start();
  const sessions = new CallerSessions(client, log);
  const callers = Array.from({ length: 200 }, (_, n) => new Caller(String(n)));
  await Promise.all(callers.map((caller) => sessions.of(caller).call("a", {}, READ).reply));
  expect(daemon.sessions.size).toBe(200);
  await Promise.all(callers.map((caller) => caller.end()));
  client.close();
  await vi.waitFor(() => expect([daemon.sessions.size, daemon.open]).toEqual([0, 0]));
});
