import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { EnvironmentClient, type ServedTool } from "../../../src/index.js";
import { memberText } from "../../../src/protocol/json-text.js";
import { ForwardingEnv } from "../../fakes/forwarding-env.js";
import { PostOffice } from "../../fakes/post-office.js";
import { type Serving, serve } from "../../fakes/serving.js";
import { EVERYTHING, MISBEHAVING, misbehavingServer } from "../../harness/everything.js";
import { RawMcp } from "../../harness/raw-mcp.js";
import { until } from "../../harness/until.js";

let office: PostOffice;
let behind: Serving;
beforeEach(async () => {
  office = new PostOffice();
  behind = await serve(office);
});
afterEach(async () => {
  await behind[Symbol.asyncDispose]();
});

describe.each([{ shared: false }, { shared: true }])(
  "what a forwarded server of ours says of its own accord ($shared)",
  ({ shared }) => {
    it("reaches who subscribed, and everybody that a list has changed", async () => {
      await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp`, shared }));
      const heard: string[] = [];
      const clients = await Promise.all(
        ["one", "two"].map(async (name) => {
          const client = await serving.client();
          client.setNotificationHandler(
            ResourceUpdatedNotificationSchema,
            ({ params }) => void heard.push(`${name} ${params.uri}`),
          );
          client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void heard.push(`${name} list`));
          await client.listResources();
          return client;
        }),
      );
      await clients[0]?.subscribeResource({ uri: "letters://1" });
      office.resourceUpdated("letters://1");
      office.resourcesChanged();
      await until(() => heard.length >= 3);
      expect(heard.sort()).toEqual(["one letters://1", "one list", "two list"]);
      office.letters.set("9", "Dear Eve");
      expect((await clients[1]?.listResources())?.resources.map(({ uri }) => uri)).toContain("letters://9");
    });

    it("changes the list of tools for all: its clients are told, and find what it serves then, on the card as well", async () => {
      const environment = new ForwardingEnv({ url: `${behind.url}/mcp`, shared });
      await using serving = await serve(environment);
      const clients = await Promise.all([serving.client(), serving.client()]);
      const told: object[] = [];
      for (const client of clients) {
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told.push(client));
        await client.listTools();
      }
      office.updateTool("blocks", { description: "Other words." });
      await until(() => new Set(told).size === 2, Boolean, { what: "both clients to be told" });
      const described = async (client: (typeof clients)[number]) =>
        (await client.listTools()).tools.find(({ name }) => name === "blocks")?.description;
      for (const client of clients) expect(await described(client)).toBe("Other words.");
      const onCard = async () =>
        (await new EnvironmentClient(serving.url).card()).capabilities.tools?.find(({ name }) => name === "blocks");
      await until(onCard, (tool) => tool?.description === "Other words.", { what: "the card" });
    });

    it("goes with the call that it belongs to, down to the level that the client asked for", async () => {
      await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp`, shared }));
      const client = await serving.client();
      const heard: unknown[] = [];
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.push(params.level));
      await client.callTool({ name: "chatter" });
      expect(heard).toEqual(["debug", "warning"]);
      await client.setLoggingLevel("warning");
      await client.callTool({ name: "chatter" });
      expect(heard.slice(2)).toEqual(["warning"]);
    });
  },
);

describe.each([{ shared: false }, { shared: true }])("a forwarded program ($shared)", ({ shared }) => {
  it("tells that its tools, prompts and resources have changed, and each list is then as it is now", async () => {
    const command = [process.execPath, MISBEHAVING] as const;
    await using serving = await serve(new ForwardingEnv({ command, shared }));
    const client = await serving.client();
    const told = new Set<string>();
    client.fallbackNotificationHandler = async ({ method }) => void told.add(method);
    const list = async (kind: "tools" | "prompts" | "resources") => {
      const result = await client.request({ method: `${kind}/list` }, z.looseObject({}));
      return (result[kind] as { name: string }[]).map(({ name }) => name);
    };
    const all = () => Promise.all([list("tools"), list("prompts"), list("resources")]);
    expect(await all()).toEqual([["odd", "second"], ["p"], ["1", "2"]]);
    await client.callTool({ name: "odd", arguments: { kind: "relist" } });
    await until(() => told.size === 3, Boolean, { what: "to be told of three lists" });
    expect(await all()).toEqual([["odd", "third"], ["p", "q"], ["3"]]);
    const answer = await client.request(
      { method: "tools/call", params: { name: "third", arguments: { n: 1 } } },
      z.looseObject({}),
    );
    expect(answer.got).toMatchObject({ name: "third", arguments: { n: 1 } });
  });

  it("may list what are no tools, of which those that are some are served", async () => {
    const command = [process.execPath, MISBEHAVING] as const;
    await using serving = await serve(new ForwardingEnv({ command, shared }));
    const client = await serving.client();
    const tools = '{"tools":[{"name":"third","inputSchema":{"type":"object"}},null,7,[]]}';
    await client.callTool({ name: "odd", arguments: { kind: "relist", tools } });
    const onCard = async () =>
      ((await new EnvironmentClient(serving.url).card()).capabilities.tools ?? []).map(({ name }) => name);
    await until(onCard, (names) => names.includes("third"), { what: "the card" });
    // What one caller's own program lists no more, another's may.
    expect(await onCard()).toEqual(shared ? ["third"] : ["odd", "second", "third"]);
  });

  it("may change its list as the environment can't take it, which goes on with what it had", async () => {
    class Picky extends ForwardingEnv {
      asked = 0;
      override servedTools(tools: ServedTool[]): ServedTool[] {
        this.asked += 1;
        if (this.asked > 1) throw new Error("no tools but those");
        return tools;
      }
    }
    const environment = new Picky({ command: [process.execPath, MISBEHAVING], shared });
    await using serving = await serve(environment);
    const client = await serving.client();
    await client.callTool({ name: "odd", arguments: { kind: "relist" } });
    await until(() => environment.asked === 2);
    expect((await client.callTool({ name: "odd", arguments: { kind: "content" } })).content).toEqual([]);
  });
});

describe("tools that come and go at a forwarded server", () => {
  const command = [process.execPath, MISBEHAVING] as const;
  const listed = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
  const onCard = async ({ url }: Serving) =>
    (await new EnvironmentClient(url).card()).capabilities.tools?.map(({ name }) => name).sort();
  const change = (client: Client, kind: string) => client.callTool({ name: "odd", arguments: { kind } });
  const same = (expected: string[]) => (names: string[] | undefined) => isDeepStrictEqual(names, expected);

  it("come and go on the card and in everybody's list, where all share the server", async () => {
    await using serving = await serve(new ForwardingEnv({ command, shared: true }));
    const [one, two] = [await serving.client(), await serving.client()];
    await change(one, "relist");
    await until(() => onCard(serving), same(["odd", "third"]), { what: "the card to have the third" });
    expect(await listed(two)).toEqual(["odd", "third"]);
    await change(two, "unlist");
    await until(() => onCard(serving), same(["odd", "second"]), { what: "the card to have the second" });
    expect(await listed(one)).toEqual(["odd", "second"]);
  });

  it("come in the list of the caller whose server it is, and in nobody else's", async () => {
    await using serving = await serve(new ForwardingEnv({ command }));
    const [one, two] = [await serving.client(), await serving.client()];
    expect(await listed(two)).toEqual(["odd", "second"]);
    await change(one, "relist");
    await until(() => onCard(serving), same(["odd", "second", "third"]), { what: "the card to have the third" });
    expect(await listed(one)).toEqual(["odd", "third"]);
    expect(await listed(two)).toEqual(["odd", "second"]);
  });

  it("go from the card where the server is reached over HTTP and shows them to nobody any more", async () => {
    await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp` }));
    await listed(await serving.client());
    const access = (op: string) =>
      fetch(`${behind.url}/tools/${op}`, { method: "POST", body: JSON.stringify({ role: "*", tools: ["blocks"] }) });
    await access("disable");
    await until(() => onCard(serving), same(["ask", "chatter", "slow", "think"]), { what: "the card without blocks" });
    await access("enable");
    await until(() => onCard(serving), same(["ask", "blocks", "chatter", "slow", "think"]), { what: "blocks again" });
  });

  it("come with prompts and resources that are asked of the server that has them, also beside another", async () => {
    const everything = { command: [process.execPath, EVERYTHING, "stdio"] as const };
    await using serving = await serve(new ForwardingEnv({ command }, everything));
    const client = await serving.client();
    await change(client, "relist");
    const anything = z.looseObject({});
    const answer = (method: string, params: object) =>
      client.request({ method, params: { ...params } }, anything).catch((thrown: unknown) => String(thrown));
    await until(
      () => answer("prompts/get", { name: "q" }),
      (got) => typeof got === "object",
      { what: "the prompt q" },
    );
    expect(await answer("resources/read", { uri: "odd://3" })).toMatchObject({ contents: [{ uri: "odd://1" }] });
  });

  it("are asked for less and less often where a server tells of changes at each session and nothing has changed", async () => {
    const open = new Set<ServerResponse>();
    let sessions = 0;
    const results: Record<string, object> = {
      initialize: { protocolVersion: "2025-11-25", capabilities: { tools: { listChanged: true } }, serverInfo: {} },
      "tools/list": { tools: [{ name: "same", inputSchema: { type: "object" } }] },
    };
    const server = createServer(async (request, response) => {
      if (request.method === "DELETE") return response.writeHead(200).end();
      if (request.method === "GET") {
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        open.add(response);
        return response.once("close", () => open.delete(response));
      }
      const { id, method } = JSON.parse(await text(request)) as { id?: number; method: string };
      const session = { "mcp-session-id": "s", "content-type": "application/json" };
      if (id === undefined) return response.writeHead(202, session).end();
      response.writeHead(200, session).end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
      if (method !== "initialize") return;
      sessions += 1;
      for (const each of open) each.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
      await using serving = await serve(new ForwardingEnv({ url }));
      expect(await listed(await serving.client())).toEqual(["same"]);
      await listed(await serving.client());
      await until(() => sessions >= 7, Boolean, { what: "the list to be asked for again" });
      const before = performance.now();
      await until(() => sessions >= 9, Boolean, { what: "the list to be asked for again" });
      expect(performance.now() - before).toBeGreaterThan(400);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("are left out where servedTools() leaves them out, and described as updateTool() says", async () => {
    class WithoutThird extends ForwardingEnv {
      override servedTools(tools: Parameters<ForwardingEnv["servedTools"]>[0]) {
        return tools.filter(({ definition }) => definition.name !== "third");
      }
    }
    const environment = new WithoutThird({ command, shared: true });
    await using serving = await serve(environment);
    const client = await serving.client();
    environment.updateTool("odd", { description: "Ours." });
    await change(client, "relist");
    await until(() => onCard(serving), same(["odd"]), { what: "the card without the second" });
    expect((await client.listTools()).tools.map(({ name, description }) => [name, description])).toEqual([
      ["odd", "Ours."],
    ]);
    await expect(client.callTool({ name: "third" })).rejects.toMatchObject({ code: -32602 });
  });

  it("keep their numbers as they were written, on the card and under another description", async () => {
    const environment = new ForwardingEnv({ command });
    await using serving = await serve(environment);
    const card = () => fetch(`${serving.url}/.well-known/agent-env.json`).then((answer) => answer.text());
    expect(await card()).toContain('"x-n":9007199254740993');
    environment.updateTool("odd", { description: "Ours." });
    expect(await card()).toContain('"description":"Ours.","inputSchema":{"type":"object","x-n":9007199254740993}');
    await using client = await RawMcp.connect(`${serving.url}/mcp`);
    const { result } = await client.request("tools/list");
    const item = memberText(result ?? "", "tools") ?? "";
    expect(item).toContain('"one":1.0,"minus":-0,"tiny":1e-400');
    expect(item).toContain('"x-n":9007199254740993');
    expect(item).toContain('"description":"Ours."');
  });
});

describe("a forwarded call", () => {
  it("is followed to its answer when the server lets the connection go in between", async () => {
    await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp` }));
    const client = await serving.client();
    const seen: number[] = [];
    const call = client.callTool({ name: "slow" }, undefined, {
      onprogress: ({ progress }) => {
        seen.push(progress);
        office.release();
      },
    });
    expect((await call).content).toEqual([{ type: "text", text: "done" }]);
    expect(seen).toEqual([1, 2]);
  });

  it("is given up after the server said nothing for too long, which is said as unknown", async () => {
    const command = [process.execPath, MISBEHAVING] as const;
    await using serving = await serve(new ForwardingEnv({ command, silenceMs: 200 }));
    const client = await serving.client();
    const { structuredContent } = await client.callTool({ name: "odd", arguments: { kind: "silent" } });
    expect(structuredContent).toMatchObject({ code: "timeout", applied: "unknown", retryable: false });
    expect((await client.callTool({ name: "odd", arguments: { kind: "content" } })).content).toEqual([]);
  });

  it("isn't given up as long as the server says something about it", async () => {
    const command = [process.execPath, EVERYTHING, "stdio"] as const;
    await using serving = await serve(new ForwardingEnv({ command, silenceMs: 1_000 }));
    const client = await serving.client();
    const call = { name: "trigger-long-running-operation", arguments: { duration: 2.4, steps: 12 } };
    const { isError } = await client.callTool(call, undefined, { onprogress: () => {} });
    expect(isError).toBeUndefined();
    const { structuredContent } = await client.callTool(call);
    expect(structuredContent).toMatchObject({ code: "timeout", applied: "unknown" });
  });

  it("that is answered over HTTP with what begins like a batch and is no JSON has lost its answer", async () => {
    await using server = await misbehavingServer();
    await using serving = await serve(new ForwardingEnv({ url: server.url }));
    const client = await serving.client();
    const { structuredContent } = await client.callTool({ name: "odd", arguments: { kind: "no JSON" } });
    expect(structuredContent).toMatchObject({ code: "delivery_failed", applied: "unknown" });
    expect((await client.callTool({ name: "odd", arguments: { kind: "content" } })).content).toEqual([]);
  });

  it("of a caller above the bound is refused, and those below go on", async () => {
    await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp`, maxSessions: 1 }));
    const [one, two] = [await serving.client(), await serving.client()];
    expect((await one.callTool({ name: "blocks" })).isError).toBeUndefined();
    expect((await two.callTool({ name: "blocks" })).structuredContent).toMatchObject({
      code: "limit_exceeded",
      applied: "no",
    });
    await (one.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    await until(async () => (await two.callTool({ name: "blocks" })).isError === undefined);
  });

  it("leaves the client's own notifications to the server", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forward-"));
    try {
      const log = join(folder, "log");
      const command = [process.execPath, MISBEHAVING] as const;
      await using serving = await serve(new ForwardingEnv({ command, env: { ODD_LOG: log } }));
      const client = await serving.client({}, { roots: { listChanged: true } });
      await client.callTool({ name: "odd", arguments: { kind: "content" } });
      await client.sendRootsListChanged();
      await until(async () => (await readFile(log, "utf8")).includes("notifications/roots/list_changed"));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("takes no notice of a notification from more callers than one session may bring", async () => {
    await using serving = await serve(new ForwardingEnv({ url: `${behind.url}/mcp` }));
    await using client = await RawMcp.connect(`${serving.url}/mcp`);
    const said = (caller: number) =>
      `{"jsonrpc":"2.0","method":"notifications/odd","params":{"_meta":{"agentenv.io/session":"${caller}"}}}`;
    for (let first = 0; first < 1_100; first += 100) {
      await client.post(`[${Array.from({ length: 100 }, (_each, index) => said(first + index)).join()}]`);
    }
    expect(serving.mcp.callers.size).toBe(1_024);
    const meta = (session: string) => `{"_meta":{"agentenv.io/session":"${session}"},"name":"blocks"}`;
    expect((await client.request("tools/call", meta("one more"))).error).toContain("limit_exceeded");
    expect((await client.request("tools/call", meta("0"))).result).toContain('"content"');
  });
});
