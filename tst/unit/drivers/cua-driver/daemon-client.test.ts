import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { DaemonClient, type DaemonClientOptions } from "../../../../drivers/cua-driver/daemon-client.js";
import { AgentEnvError } from "../../../../src/errors.js";
import { RawJson } from "../../../../src/protocol/raw-json.js";
import { FakeCuaDaemon, textResult } from "../../../fakes/cua-daemon.js";

const log = pino({ level: "silent" });
const READ = { reads: true };
const INPUT = { reads: false };

async function startDaemon(): Promise<FakeCuaDaemon> {
  const daemon = await FakeCuaDaemon.start();
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  return daemon;
}

function connect(daemon: { socketPath: string }, options: Partial<DaemonClientOptions> = {}): DaemonClient {
  const client = new DaemonClient({ socketPath: daemon.socketPath, log, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** The error that a call ends with, as a caller sees it. */
async function failure(reply: Promise<unknown>) {
  const error = await reply.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AgentEnvError);
  const { code, applied, retryable } = error as AgentEnvError;
  return { code, applied, retryable };
}

const UNSENT = { code: "device_unavailable", applied: "no", retryable: true };
const LOST = { code: "delivery_failed", applied: "unknown", retryable: false };

test("a result is the text that the daemon sent, unknown keys, key order and numbers as written included", async () => {
  const daemon = await startDaemon();
  const result =
    '{"structuredContent":{"scale_factor":1.0,"n":1e3},"content":[{"type":"odd","text":"é\\u0007✅"}],"x":null}';
  daemon.behaviour = () => ({ raw: `{"ok":true,"result":${result}}\n` });
  const reply = await connect(daemon).call("get_screen_size", {}, READ).reply;
  expect(reply).toEqual({ ok: true, json: new RawJson(result), value: JSON.parse(result), pictures: [] });
});

describe("a long result", () => {
  const bytes = Buffer.from(Array.from({ length: 30_000 }, (_, at) => at % 251));
  const base64 = bytes.toString("base64");
  const replyTo = async (result: string) => {
    const daemon = await startDaemon();
    daemon.behaviour = () => ({ raw: `{"ok":true,"result":${result}}\n` });
    const reply = await connect(daemon).call("get_desktop_state", {}, READ).reply;
    if (!reply.ok) throw new Error(reply.error);
    return reply;
  };
  const withData = (data: string) => `{"content":[{"type":"image","data":${data},"n":1.0},{"text":"é","type":"text"}]}`;

  test("goes on as it came, and its picture is neither parsed nor lost", async () => {
    const result = withData(`"${base64}"`);
    const { json, value, pictures } = await replyTo(result);
    expect(json.parts?.[1].toString()).toBe(result);
    expect(json.text).toBe(result);
    expect(value).toEqual(JSON.parse(withData('""')));
    expect(pictures).toEqual([{ base64: Buffer.from(base64), bytes }]);
  });

  test("of several pictures has them all, and what looks like one but is text stays where it is", async () => {
    const text = JSON.stringify(`"data":"${base64}"`);
    const result = `{"a":{"data":"${base64}"},"text":${text},"data":"short","b":{"data":"${base64.slice(0, 8_000)}"}}`;
    const { json, value, pictures } = await replyTo(result);
    expect(json.text).toBe(result);
    expect(value).toEqual({ a: { data: "" }, text: JSON.parse(text), data: "short", b: { data: "" } });
    expect(pictures.map((each) => each.bytes.length)).toEqual([30_000, 6_000]);
  });

  test.each([
    ["a letter that base64 hasn't", `"${base64.slice(0, -4)}%AAA"`],
    ["an escape", `"${base64.slice(0, -4)}\\/AA"`],
    ["a part too few", `"${base64.slice(0, -1)}"`],
  ])("whose data has %s is parsed as it is", async (_, data) => {
    const { json, value, pictures } = await replyTo(withData(data));
    expect(json.text).toBe(withData(data));
    expect(value).toEqual(JSON.parse(withData(data)));
    expect(pictures).toEqual([]);
  });

  test("that is no JSON around its picture, or in it, is internal", async () => {
    for (const bad of [withData(`"${base64}"`).slice(0, -2), withData(`"${base64.slice(0, -1)}\u0001"`)]) {
      await expect(replyTo(bad)).rejects.toMatchObject({ code: "internal" });
    }
  });
});

test("a result is found where the daemon puts keys around it", async () => {
  const daemon = await startDaemon();
  daemon.behaviour = () => ({ raw: '{"took":3,"ok":true,"result":{"content":[]},"more":{}}\n' });
  expect(await connect(daemon).call("x", {}, READ).reply).toMatchObject({ ok: true, json: { text: '{"content":[]}' } });
});

test("a refusal is an answer, with its exit code", async () => {
  const daemon = await startDaemon();
  daemon.behaviour = () => ({ refuse: "session has ended", exitCode: 64 });
  expect(await connect(daemon).call("x", {}, INPUT).reply).toEqual({
    ok: false,
    error: "session has ended",
    exitCode: 64,
  });
});

test("arguments arrive untouched, one called `name` too, in the session that was named", async () => {
  const daemon = await startDaemon();
  const args = { name: "thunar", method: "x", session: "mine", text: "line\nbreak", n: 0.5, none: null };
  await connect(daemon).call("launch_app", args, INPUT, "mcp-1").reply;
  expect(daemon.calls).toMatchObject([
    { method: "call", name: "launch_app", args, session_id: "mcp-1", observation_origin: "mcp_proxy" },
  ]);
});

test("200 calls at once have a connection each and each its own answer", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  const replies = await Promise.all(Array.from({ length: 200 }, (_, n) => client.call("echo", { n }, READ).reply));
  expect(replies.map((reply) => reply.ok && reply.value)).toEqual(
    Array.from({ length: 200 }, (_, n) => textResult(`echo {"n":${n}}`)),
  );
  expect(new Set(daemon.calls.map(({ connection }) => connection)).size).toBe(200);
});

test("a connection is opened ahead of the next call, and only one", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  await client.call("a", {}, READ).reply;
  await vi.waitFor(() => expect(daemon.connections).toBe(2));
  await client.call("b", {}, READ).reply;
  expect(daemon.calls.map(({ connection }) => connection)).toEqual([1, 2]);
  await vi.waitFor(() => expect(daemon.open).toBe(1));
});

test("a connection opened ahead that the daemon closed is replaced, and the call is sent once", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  await client.call("a", {}, READ).reply;
  await vi.waitFor(() => expect(daemon.open).toBe(1));
  await daemon.die();
  await daemon.listen();
  expect(await client.call("b", {}, INPUT).reply).toMatchObject({ ok: true });
  expect(daemon.calls.map(({ name }) => name)).toEqual(["a", "b"]);
});

test("without a daemon a call is device_unavailable, applied no, and works once the daemon is there", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  await daemon.die();
  expect(await failure(client.call("click", {}, INPUT).reply)).toEqual(UNSENT);
  expect(await failure(client.call("click", {}, INPUT).reply)).toEqual(UNSENT);
  await daemon.listen();
  expect(await client.call("click", {}, INPUT).reply).toMatchObject({ ok: true });
  expect(daemon.calls).toHaveLength(1);
});

test("a daemon that goes away after it read a call is delivery_failed, applied unknown, and nothing is sent twice", async () => {
  const daemon = await startDaemon();
  daemon.behaviour = () => "drop";
  const client = connect(daemon);
  expect(await failure(client.call("click", {}, INPUT).reply)).toEqual(LOST);
  expect(await failure(client.call("get_screen_size", {}, READ).reply)).toEqual(LOST);
  expect(daemon.calls).toHaveLength(2);
});

test("a daemon that closes every connection unread fails calls, and none is ever read", async () => {
  const daemon = await startDaemon();
  daemon.dropsConnections = true;
  const client = connect(daemon);
  for (let n = 0; n < 20; n += 1) {
    const { code } = await failure(client.call("click", {}, INPUT).reply);
    expect(["device_unavailable", "delivery_failed"]).toContain(code);
  }
  expect(daemon.requests).toHaveLength(0);
});

test.each([
  ["read", READ, "no"],
  ["input", INPUT, "unknown"],
] as const)(
  "at its deadline a %s is a timeout, its connection is closed and the next call works",
  async (_, kind, applied) => {
    const daemon = await startDaemon();
    daemon.behaviour = () => "hang";
    const missed: string[] = [];
    const client = connect(daemon, { deadlines: { call: 50 }, onDeadline: (what) => missed.push(what) });
    const call = client.call("slow", {}, kind);
    expect(await failure(call.reply)).toEqual({ code: "timeout", applied, retryable: false });
    await call.settled;
    expect(missed).toEqual(["slow"]);
    daemon.behaviour = () => ({ result: textResult("quick") });
    expect(await client.call("next", {}, kind).reply).toMatchObject({ value: textResult("quick") });
    await vi.waitFor(() => expect(daemon.open).toBe(1));
  },
);

test("a cancelled read closes its connection at once", async () => {
  const daemon = await startDaemon();
  daemon.behaviour = () => "hang";
  const cancel = new AbortController();
  const call = connect(daemon).call("get_window_state", {}, { reads: true, signal: cancel.signal });
  await vi.waitFor(() => expect(daemon.calls).toHaveLength(1));
  cancel.abort();
  expect(await failure(call.reply)).toEqual({ code: "delivery_failed", applied: "no", retryable: false });
  await call.settled;
  await vi.waitFor(() => expect(daemon.open).toBe(1));
});

test("a cancelled input is applied unknown, settles when the daemon is done, and its answer reaches nobody", async () => {
  const daemon = await startDaemon();
  let finish: (() => void) | undefined;
  daemon.behaviour = async ({ name }) => {
    if (name === "type_text") await new Promise<void>((resolve) => (finish = resolve));
    return { result: textResult(String(name)) };
  };
  const cancel = new AbortController();
  const client = connect(daemon);
  const call = client.call("type_text", {}, { reads: false, signal: cancel.signal });
  await vi.waitFor(() => expect(finish).toBeDefined());
  cancel.abort();
  expect(await failure(call.reply)).toEqual(LOST);
  let settled = false;
  void call.settled.then(() => {
    settled = true;
  });
  expect(await client.call("get_screen_size", {}, READ).reply).toMatchObject({ value: textResult("get_screen_size") });
  expect(settled).toBe(false);
  finish?.();
  await call.settled;
  await vi.waitFor(() => expect(daemon.open).toBe(1));
});

test("a call that is cancelled before it is sent isn't sent", async () => {
  const daemon = await startDaemon();
  const call = connect(daemon).call("click", {}, { reads: false, signal: AbortSignal.abort() });
  expect(await failure(call.reply)).toEqual({ code: "delivery_failed", applied: "no", retryable: false });
  await call.settled;
  expect(daemon.requests).toHaveLength(0);
});

test.each([
  ["no JSON", "garbage\n"],
  ["an empty line", "\n"],
  ["JSON that is no reply", "[1]\n"],
  ["a reply without a result", '{"ok":true}\n'],
  ["a reply with a broken result", '{"ok":true,"result":{"a":}}\n'],
  ["a refusal without a text", '{"ok":false,"exit_code":1}\n'],
  ["two lines", '{"ok":true,"result":{}}\n{"ok":true,"result":{}}\n'],
  ["the start of a second line", '{"ok":true,"result":{}}\n{'],
  ["bytes that aren't UTF-8", Buffer.from([0x22, 0xff, 0x22, 0x0a])],
  ["a line that is too long", `{"ok":true,"result":"${"x".repeat(5000)}"}\n`],
  ["a line that never ends", "x".repeat(5000)],
])("%s as an answer is internal, and the next call works", async (_, raw) => {
  const daemon = await startDaemon();
  daemon.behaviour = () => ({ raw });
  const client = connect(daemon, { maxReplyBytes: 4096 });
  expect(await failure(client.call("click", {}, INPUT).reply)).toEqual({
    code: "internal",
    applied: "unknown",
    retryable: false,
  });
  daemon.behaviour = () => ({ result: textResult("fine") });
  expect(await client.call("click", {}, INPUT).reply).toMatchObject({ value: textResult("fine") });
  await vi.waitFor(() => expect(daemon.open).toBe(1));
});

test("an answer of almost 64 MiB arrives whole, and a longer one is refused while it comes in", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  const limit = 64 * 1024 * 1024;
  const around = JSON.stringify({ ok: true, result: textResult("") }).length;
  const answerOf = (bytes: number) =>
    `${JSON.stringify({ ok: true, result: textResult("x".repeat(bytes - around)) })}\n`;
  daemon.behaviour = () => ({ raw: answerOf(limit - 1) });
  const reply = await client.call("big", {}, READ).reply;
  expect(reply.ok && reply.json.text.length).toBe(limit - 1 - '{"ok":true,"result":}'.length);
  daemon.behaviour = () => ({ raw: answerOf(limit + 1) });
  expect(await failure(client.call("big", {}, INPUT).reply)).toMatchObject({ code: "internal", applied: "unknown" });
  daemon.behaviour = () => ({ result: textResult("fine") });
  expect(await client.call("click", {}, INPUT).reply).toMatchObject({ value: textResult("fine") });
});

test("an answer that is cut is delivery_failed", async () => {
  const daemon = await startDaemon();
  daemon.behaviour = () => ({ cut: '{"ok":true,"result":{"content":[' });
  expect(await failure(connect(daemon).call("click", {}, INPUT).reply)).toEqual(LOST);
});

test("an answer that comes in many pieces is put together, characters split between them included", async () => {
  const daemon = await startDaemon();
  const text = "é✅😀".repeat(100_000);
  daemon.behaviour = () => ({ result: textResult(text) });
  expect(await connect(daemon).call("big", {}, READ).reply).toMatchObject({ value: textResult(text) });
});

test("metadata is checked for its shape, and the pid is remembered", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  expect(await client.metadata()).toMatchObject({ driver_version: "0.37.0", pid: 4242 });
  expect(client.knownPid).toBe(4242);
  daemon.metadata = { driver_version: 37 };
  expect(await failure(client.metadata())).toEqual({ code: "internal", applied: "no", retryable: false });
});

test("a closed client has no connection left and sends nothing", async () => {
  const daemon = await startDaemon();
  const client = connect(daemon);
  await client.call("a", {}, READ).reply;
  client.close();
  await vi.waitFor(() => expect(daemon.open).toBe(0));
  expect(() => client.call("b", {}, READ)).toThrow(AgentEnvError);
  expect(daemon.calls).toHaveLength(1);
});
