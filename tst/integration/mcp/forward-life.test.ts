import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { CreateMessageRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { Environment, type ForwardedServer, forwardMcp, resource, type ToolContext, tool } from "../../../src/index.js";
import { ForwardingEnv } from "../../fakes/forwarding-env.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { Shop } from "../../fakes/shop.js";
import { EVERYTHING, everythingServer, freePort, MISBEHAVING, misbehavingServer } from "../../harness/everything.js";
import { processesWith } from "../../harness/processes.js";
import { RawMcp } from "../../harness/raw-mcp.js";
import { until } from "../../harness/until.js";

const EVERYTHING_COMMAND = [process.execPath, EVERYTHING, "stdio"] as const;

let folder: string;
let log: string;
let serving: Serving | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forward-"));
  log = join(folder, "log");
});
afterEach(async () => {
  await serving?.[Symbol.asyncDispose]();
  serving = undefined;
  await rm(folder, { recursive: true, force: true });
});

/** The misbehaving server as a child, which notes what it gets and starts a process of its own. */
function odd(more: object = {}) {
  return { command: [process.execPath, MISBEHAVING] as const, env: { ODD_LOG: log, ODD_CHILD: "1" }, ...more };
}

const running = () => processesWith(log).map(({ command }) => command);
const received = async (text: string) =>
  (await readFile(log, "utf8")).split("\n").filter((line) => line.includes(text));
const call = (client: Client, args: object, options?: { signal: AbortSignal }) =>
  client.callTool({ name: "odd", arguments: { ...args } }, undefined, options);

describe("a forwarded server", () => {
  it("has a process for each caller, which ends with all that it started when the caller's session ends", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    await until(() => running().length === 0, Boolean, { what: "nothing runs before anyone calls" });
    const [one, two] = [await serving.client(), await serving.client()];
    await Promise.all([call(one, { kind: "content" }), call(two, { kind: "content" })]);
    await until(running, (all) => all.length === 4);
    await (one.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    await until(running, (all) => all.length === 2);
    await serving[Symbol.asyncDispose]();
    await until(running, (all) => all.length === 0);
  });

  it("is one process for all callers where they share it", async () => {
    serving = await serve(new ForwardingEnv(odd({ shared: true })));
    const clients = [await serving.client(), await serving.client(), await serving.client()];
    const args = clients.map((_client, index) => ({ index }));
    const answers = await Promise.all(clients.map((client, index) => call(client, args[index] ?? {})));
    expect(answers.map((answer) => (answer as { got?: { arguments: object } }).got?.arguments)).toEqual(args);
    expect(running()).toHaveLength(2);
  });

  it("is started anew after it crashed, and gets no call a second time", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    const client = await serving.client();
    await call(client, { kind: "content", n: 1 });
    const crashed = await call(client, { kind: "crash" });
    expect(crashed.structuredContent).toMatchObject({ code: "delivery_failed", applied: "unknown", retryable: false });
    expect((await call(client, { kind: "content", n: 2 })).content).toEqual([]);
    expect(await received('"crash"')).toHaveLength(1);
    expect(await received('"tools/call"')).toHaveLength(3);
    await until(running, (all) => all.length === 2);
  });

  it("gets no call where it can't be started, which is said as not applied", async () => {
    const environment = new ForwardingEnv(odd());
    serving = await serve(environment);
    const client = await serving.client();
    await call(client, { kind: "content" });
    (environment.behind[0] as unknown as { options: { command: string[] } }).options.command = [join(folder, "none")];
    await call(client, { kind: "crash" });
    const { structuredContent } = await call(client, { kind: "content" });
    expect(structuredContent).toMatchObject({ code: "device_unavailable", applied: "no", retryable: true });
  });

  it("that doesn't come up is refused with the folder that it ran in and what it wrote last, without the frames of a stack", async () => {
    const program = `console.error("reading settings");
      require("./settings.that-is-not-there");`;
    const command = [process.execPath, "--eval", program] as const;
    const refused = await serve(new ForwardingEnv({ command, cwd: folder })).catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ message: expect.stringMatching(/can't be forwarded.*ended with code 1/) });
    const { hint } = refused as { hint: string };
    expect(hint).toContain(`in ${folder}`);
    expect(hint).toContain("reading settings");
    expect(hint).toContain("Cannot find module './settings.that-is-not-there'");
    expect(hint).not.toMatch(/^\s+at /m);
    // Without a folder of its own it is the one of this process.
    const elsewhere = await serve(new ForwardingEnv({ command: ["false"] })).catch((thrown: unknown) => thrown);
    expect(elsewhere).toMatchObject({ hint: expect.stringContaining(`in ${process.cwd()}`) });
  });

  it("that is served over HTTP and is restarted gets a new session, with the log level that its client asked for", async () => {
    const port = await freePort();
    let server = await everythingServer(port);
    try {
      serving = await serve(new ForwardingEnv({ url: server.url }));
      const client = await serving.client();
      const echo = () => client.callTool({ name: "echo", arguments: { message: "hi" } });
      await client.setLoggingLevel("debug");
      expect((await echo()).content).toEqual([{ type: "text", text: "Echo: hi" }]);
      await server[Symbol.asyncDispose]();
      expect((await echo()).structuredContent).toMatchObject({ applied: "no", code: "device_unavailable" });
      server = await everythingServer(port);
      expect((await echo()).content).toEqual([{ type: "text", text: "Echo: hi" }]);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  });

  it("that is served over HTTP and dies over a call gets that call no second time, and the next one once it is there again", async () => {
    const port = await freePort();
    let server = await misbehavingServer(port, { ODD_LOG: log });
    try {
      serving = await serve(new ForwardingEnv({ url: server.url }));
      const client = await serving.client();
      await call(client, { kind: "content", n: 1 });
      const crashed = await call(client, { kind: "crash" });
      expect(crashed.structuredContent).toMatchObject({
        code: "delivery_failed",
        applied: "unknown",
        retryable: false,
      });
      await server[Symbol.asyncDispose]();
      server = await misbehavingServer(port, { ODD_LOG: log });
      expect((await call(client, { kind: "content", n: 2 })).content).toEqual([]);
      expect(await received('"crash"')).toHaveLength(1);
      expect(await received('"tools/call"')).toHaveLength(3);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  });

  it("tells progress to the call that asked for it, also where two clients chose the same token", async () => {
    serving = await serve(new ForwardingEnv({ command: EVERYTHING_COMMAND, shared: true }));
    const clients = [await serving.client(), await serving.client()];
    const seen = await Promise.all(
      clients.map(async (client, index) => {
        const steps: number[] = [];
        const args = { duration: 0.2, steps: index + 2 };
        await client.callTool({ name: "trigger-long-running-operation", arguments: args }, undefined, {
          onprogress: ({ total }) => steps.push(total ?? 0),
        });
        return steps;
      }),
    );
    expect(seen).toEqual([
      [2, 2],
      [3, 3, 3],
    ]);
  });

  it("asks the caller's own client, and gets its answer with the numbers as they were written", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    const answers = { "sampling/createMessage": '{"n":1.0,"big":9007199254740993}' };
    await using client = await RawMcp.connect(`${serving.url}/mcp`, { sampling: {} }, answers);
    const { before, result } = await client.request("tools/call", '{"name":"odd","arguments":{"kind":"ask"}}');
    expect([...before, ...client.unasked].some((each) => each.includes("9007199254740993"))).toBe(true);
    expect(result).toBe('{"content":[],"reply":{"n":1.0,"big":9007199254740993}}');
  });

  it("hears of the progress that a client makes with its question, and a question that it takes back is taken back there", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    const client = await serving.client({}, { sampling: {} });
    let takenBack = false;
    client.setRequestHandler(CreateMessageRequestSchema, async ({ params }, { signal, sendNotification }) => {
      const progressToken = params._meta?.progressToken ?? "none";
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress: 0.5 } });
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      takenBack = true;
      return { role: "assistant", content: { type: "text", text: "too late" }, model: "m" };
    });
    expect((await call(client, { kind: "forget", ms: 300 })).content).toEqual([]);
    await until(() => takenBack, Boolean, { what: "the question to be taken back" });
    const [progress] = await until(
      () => received("notifications/progress"),
      (lines) => lines.length === 1,
    );
    expect(progress).toContain('"params":{"progressToken":"p","progress":0.5}');
    expect(await received("too late")).toEqual([]);
  });

  it("is told when a call is cancelled; 100 calls cancelled at random leave nothing behind, and no reply reaches another", async () => {
    serving = await serve(new ForwardingEnv(odd({ shared: true })));
    const client = await serving.client();
    // As many calls at once as later, so that the connections that stay open are there already.
    await Promise.all(Array.from({ length: 100 }, () => call(client, { kind: "later", ms: 20 })));
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
    const before = timers();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, async (_each, index) => {
        const abort = new AbortController();
        const answer = call(client, { kind: "later", ms: 100 + (index % 40) * 5, index }, { signal: abort.signal });
        setTimeout(() => abort.abort(), Math.random() * 300);
        return answer;
      }),
    );
    const cancelled = outcomes.filter((each) => each.status === "rejected");
    expect(cancelled.length).toBeGreaterThan(10);
    const marks = Array.from({ length: 20 }, (_each, index) => ({ mark: index }));
    const later = await Promise.all(marks.map((mark) => call(client, mark)));
    expect(later.map((each) => (each as unknown as { got: { arguments: object } }).got.arguments)).toEqual(marks);
    await until(timers, (count) => count <= before, { what: "timers" });
    await until(() => serving?.mcp.inFlight === 0, Boolean, { what: "no call in the works" });
    expect(running()).toHaveLength(2);
    expect((await received("notifications/cancelled")).length).toBeGreaterThan(0);
  });

  it("gets more at once than a pipe holds, and nothing waits in line with a listener of its own", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => void warnings.push(warning);
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    serving = await serve(new ForwardingEnv(odd()));
    const client = await serving.client();
    const args = Array.from({ length: 30 }, (_each, mark) => ({ mark, pad: "x".repeat(200_000) }));
    const answers = await Promise.all(args.map((each) => call(client, each)));
    expect(answers.map((answer) => (answer as unknown as { got: { arguments: object } }).got.arguments)).toEqual(args);
    expect(warnings).toEqual([]);
  });

  it("is told of a cancellation whose reason is no text, and the environment goes on", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    await using client = await RawMcp.connect(`${serving.url}/mcp`);
    const silent = client.request("tools/call", '{"name":"odd","arguments":{"kind":"silent"}}');
    await until(async () => (await received('"silent"').catch(() => [])).length === 1);
    const params = '{"requestId":2,"reason":{"toString":1,"valueOf":1}}';
    await client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`);
    expect((await silent).result).toBeUndefined();
    await until(async () => (await received("notifications/cancelled")).length === 1);
    const { result } = await client.request("tools/call", '{"name":"odd","arguments":{"kind":"content"}}');
    expect(result).toBe('{"content":[]}');
  });

  it("that is served over HTTP lets go of each of 100 calls that are cancelled at random, and no connection, listener or timer is left", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => void warnings.push(warning);
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    const resources = () => {
      const all = process.getActiveResourcesInfo();
      return ["Timeout", "TCPSocketWrap", "TCPServerWrap"].map((kind) => all.filter((each) => each === kind).length);
    };
    const before = resources();
    {
      const shop = new Shop();
      await using behind = await serve(shop);
      await using forwarding = await serve(new ForwardingEnv({ url: `${behind.url}/mcp` }));
      const client = await forwarding.client();
      const wait = async () => {
        const abort = new AbortController();
        const answer = client.callTool({ name: "wait", arguments: {} }, undefined, { signal: abort.signal });
        setTimeout(() => abort.abort(), Math.random() * 300);
        await expect(answer).rejects.toThrow(/abort/i);
      };
      await Promise.all(Array.from({ length: 100 }, wait));
      const open = () => [forwarding.mcp.inFlight, behind.mcp.inFlight, shop.waits - shop.aborted];
      await until(open, (counts) => counts.every((count) => count === 0), { what: "every call to be let go" });
      expect(shop.waits).toBeGreaterThan(10);
      const items = Array.from({ length: 20 }, (_each, index) => `item ${index}`);
      const answers = await Promise.all(items.map((item) => client.callTool({ name: "order", arguments: { item } })));
      expect(answers.map(({ structuredContent }) => (structuredContent as { ordered: string }).ordered)).toEqual(items);
    }
    const left = (now: number[]) => now.every((count, kind) => count <= (before[kind] ?? 0));
    await until(resources, left, { what: `no more than ${before}` });
    expect(warnings).toEqual([]);
  });

  it("is refused beside another with the same tool, naming both, and nothing of either stays", async () => {
    class Twice extends ForwardingEnv {
      @tool({ description: "Mine.", input: z.object({}) })
      echo() {
        return "mine";
      }
    }
    await expect(serve(new Twice({ command: EVERYTHING_COMMAND, env: { MARK: log } }))).rejects.toThrow(
      /"echo" is served twice: by a tool of the environment and by the server/,
    );
    await expect(serve(new ForwardingEnv(odd({ name: "a", shared: true }), odd({ name: "b" })))).rejects.toThrow(
      /served twice: by the server a and by the server b/,
    );
    await until(running, (all) => all.length === 0);
  });

  it("is refused where a resource of it and one of somebody else have a URI in common, naming both", async () => {
    class Beside extends ForwardingEnv {
      @resource("odd://1")
      mine() {
        return "mine";
      }
    }
    class Above extends ForwardingEnv {
      @resource("odd://{id}")
      all({ id }: { id: string }) {
        return id;
      }
    }
    class Below extends ForwardingEnv {
      @resource("demo://resource/dynamic/text/1")
      first() {
        return "mine";
      }
    }
    await expect(serve(new Beside(odd()))).rejects.toThrow(/"odd:\/\/1" is served twice: by the resource mine and by/);
    await expect(serve(new Above(odd({ name: "behind" })))).rejects.toThrow(
      /claimed twice: by odd:\/\/\{id\} \(all\) and by odd:\/\/1 \(the server behind\)/,
    );
    await expect(serve(new Below({ command: EVERYTHING_COMMAND, name: "behind", env: { MARK: log } }))).rejects.toThrow(
      /claimed twice: by demo:\/\/resource\/dynamic\/text\/\{resourceId\} \(the server behind\) and by demo:\/\/resource\/dynamic\/text\/1 \(first\)/,
    );
    await until(running, (all) => all.length === 0);
  });

  it("gets no call that the environment answers itself, before the call or in the tool's place", async () => {
    const words = (text: string) => ({ content: [{ type: "text" as const, text }] });
    class Guarded extends ForwardingEnv {
      override onToolCall({ tool: name, arguments: { kind } }: ToolContext) {
        return kind === "guarded" ? words(`not ${name}`) : undefined;
      }
    }
    class Replaced extends ForwardingEnv {
      override servedTools(tools: Parameters<Environment["servedTools"]>[0]) {
        return tools.map((each) =>
          Object.assign(Object.create(each) as typeof each, { call: async () => words("replaced") }),
        );
      }
    }
    serving = await serve(new Guarded(odd()));
    const client = await serving.client();
    expect((await call(client, { kind: "guarded" })).content).toEqual(words("not odd").content);
    expect((await call(client, { kind: "content" })).content).toEqual([]);
    expect(await received('"tools/call"')).toHaveLength(1);
    await serving[Symbol.asyncDispose]();
    serving = await serve(new Replaced(odd()));
    expect((await call(await serving.client(), { kind: "content" })).content).toEqual(words("replaced").content);
    expect(await received('"tools/call"')).toHaveLength(1);
  });

  it("gets no call in which it could read another tool's name than was looked at", async () => {
    serving = await serve(new ForwardingEnv(odd()));
    await using client = await RawMcp.connect(`${serving.url}/mcp`);
    const ambiguous = [
      '"name":"second","name":"odd"',
      '"Name":"second","name":"odd"',
      '"n\\u0061me":"second","name":"odd"',
    ];
    for (const names of ambiguous) {
      const { error = "" } = await client.request("tools/call", `{${names},"arguments":{}}`);
      expect(JSON.parse(error)).toMatchObject({ code: -32602 });
    }
    await client.request("tools/call", '{"name":"odd","arguments":{"name":"second","Name":"third"}}');
    expect(await received('"tools/call"')).toHaveLength(1);
  });

  it("goes beside the environment's own tools, under tool access, and with what is hidden left out", async () => {
    class Beside extends Environment {
      readonly behind = [forwardMcp(odd())];
      @tool({ description: "Mine.", input: z.object({}) })
      mine() {
        return "mine";
      }
      override forwardedServers(): ForwardedServer[] {
        return this.behind;
      }
      override servedTools(tools: Parameters<Environment["servedTools"]>[0]) {
        return tools.filter(({ definition }) => definition.name !== "second");
      }
      override instructions() {
        return "First mine.";
      }
    }
    const environment = new Beside();
    serving = await serve(environment);
    const client = await serving.client({ "agentenv-role": "r" });
    const names = async (params = {}) =>
      ((await client.request({ method: "tools/list", params }, z.any())) as { tools: { name: string }[] }).tools.map(
        ({ name }) => name,
      );
    expect(client.getInstructions()).toBe("First mine.\n\nMind the numbers.");
    expect(await names()).toEqual(["mine", "odd"]);
    expect(await names({ cursor: "page two" })).toEqual(["mine"]);
    const body = JSON.stringify({ role: "r", tools: ["odd"] });
    const access = (op: string) => fetch(`${serving?.url}/tools/${op}`, { method: "POST", body });
    await access("disable");
    expect((await call(client, {})).structuredContent).toMatchObject({ code: "permission_denied" });
    await access("enable");
    expect((await client.callTool({ name: "mine" })).content).toEqual([{ type: "text", text: "mine" }]);
    // The server would take both: servedTools() left out the one, and was never asked about the other.
    for (const name of ["second", "unlisted"]) {
      await expect(client.callTool({ name })).rejects.toMatchObject({ code: -32602 });
    }
    environment.updateTool("odd", { description: "Changed." });
    const { tools } = (await client.request({ method: "tools/list" }, z.any())) as {
      tools: { description?: string }[];
    };
    expect(tools[1]?.description).toBe("Changed.");
    await access("disable");
    expect(await names()).toEqual(["mine"]);
    expect((await call(client, {})).structuredContent).toMatchObject({ code: "permission_denied" });
    expect(await received('"tools/call"').catch(() => [])).toEqual([]);
  });
});
