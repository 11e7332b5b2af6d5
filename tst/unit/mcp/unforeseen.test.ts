import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Application } from "../../../src/environment/application.js";
import type { ToolContext } from "../../../src/environment/context.js";
import { prompt, resource, tool } from "../../../src/environment/decorators.js";
import { Environment } from "../../../src/environment/environment.js";
import { listen } from "../../../src/http/listen.js";
import { buildHttp } from "../../../src/http/server.js";
import { McpClient } from "../../../src/mcp/client.js";
import { McpEndpoint } from "../../../src/mcp/endpoint.js";
import { until } from "../../harness/until.js";

/** Has a fault in each of its parts. */
class Faulty extends Environment {
  asked = 0;

  @tool({ description: "Waits until it is cancelled.", input: z.object({}) })
  async wait(_args: object, { signal }: ToolContext): Promise<string> {
    this.asked += 1;
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    signal.throwIfAborted();
    return "";
  }

  @tool({ description: "Fails.", input: z.object({}) })
  fails(): string {
    throw new TypeError("a fault of the tool");
  }

  @resource("faulty://one")
  one(): string {
    throw new TypeError("a fault of the resource");
  }

  @prompt({ description: "Fails." })
  start(): string {
    throw new TypeError("a fault of the prompt");
  }
}

let logged: { level: number; err?: { message: string; stack: string }; method?: string; tool?: string }[];
let environment: Faulty;
let client: McpClient;
const open: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  logged = [];
  const lines = new Writable({
    write(chunk, _encoding, done) {
      logged.push(JSON.parse(String(chunk)));
      done();
    },
  });
  environment = new Faulty();
  const log = pino({ level: "warn" }, lines);
  const application = await Application.build(environment, log);
  const mcp = new McpEndpoint(application);
  const app = buildHttp(application, mcp, { log, finished: true });
  client = await McpClient.connect(`http://127.0.0.1:${await listen(app, "127.0.0.1", 0)}`);
  open.push(
    () => client.close(),
    () => mcp.close(),
    () => app.close(),
  );
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

describe("a fault of an environment's own code", () => {
  it("is logged once with its stack, whichever part of it has it", async () => {
    expect((await client.call("fails", {})).isError).toBe(true);
    await expect(client.request("resources/read", { uri: "faulty://one" })).rejects.toThrow(/a fault of the resource/);
    await expect(client.request("prompts/get", { name: "start" })).rejects.toThrow(/a fault of the prompt/);
    expect(logged.map(({ err }) => err?.message)).toEqual(
      ["tool", "resource", "prompt"].map((part) => `a fault of the ${part}`),
    );
    for (const { err } of logged) expect(err?.stack).toContain("unforeseen.test.ts");
    expect(logged.map(({ method }) => method)).toEqual([undefined, "resources/read", "prompts/get"]);
  });

  it("is none where a refusal is answered, or a call ends because it was cancelled or its session ended", async () => {
    await expect(client.request("resources/read", { uri: "faulty://two" })).rejects.toThrow(/not found/);
    await expect(client.request("prompts/get", { name: "other" })).rejects.toThrow(/Unknown prompt/);
    const cancelled = new AbortController();
    const waiting = client.call("wait", {}, cancelled.signal);
    await until(() => environment.asked === 1, Boolean);
    cancelled.abort();
    await expect(waiting).rejects.toThrow();
    const over = client.call("wait", {});
    over.catch(() => {});
    await until(() => environment.asked === 2, Boolean);
    for (const close of open.splice(0)) await close();
    expect(logged).toEqual([]);
  });
});
