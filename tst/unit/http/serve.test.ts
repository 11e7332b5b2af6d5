import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { describe, expect, it } from "vitest";
import { Environment, EnvironmentClient } from "../../../src/index.js";

class Empty extends Environment {
  closed = 0;
  override async close(): Promise<void> {
    this.closed += 1;
  }
}

const HELLO = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

describe("env.serve()", () => {
  it("serves on a free port of loopback until it is disposed of, and closes the environment once", async () => {
    const environment = new Empty();
    let url: string;
    {
      await using serving = await environment.serve();
      url = serving.url;
      expect(url).toBe(`http://127.0.0.1:${serving.port}`);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      await serving.close();
    }
    expect(environment.closed).toBe(1);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it("is refused beyond loopback without tokens, and on a taken port", async () => {
    await expect(new Empty().serve({ host: "0.0.0.0" })).rejects.toMatchObject({ name: "SetupError" });
    await using open = await new Empty().serve({ host: "0.0.0.0", insecure: true });
    const taken = new Empty();
    await expect(
      taken.serve({ port: open.port, host: "0.0.0.0", tokens: [`agent:${"a".repeat(16)}`] }),
    ).rejects.toMatchObject({
      name: "SetupError",
    });
    expect(taken.closed).toBe(1);
  });

  it("takes tokens", async () => {
    await using serving = await new Empty().serve({ tokens: [`framework:${"f".repeat(16)}`] });
    const card = (token: string) =>
      fetch(`${serving.url}/.well-known/agent-env.json`, { headers: { authorization: `Bearer ${token}` } });
    expect((await card("x".repeat(16))).status).toBe(401);
    expect((await card("f".repeat(16))).status).toBe(200);
  });
});

describe("what an author adds to the app", () => {
  const sees = async (url: string) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    return (await fetch(`${url}/mcp`, { method: "POST", headers, body: JSON.stringify(HELLO) })).headers.get("x-seen");
  };
  const mark = (app: FastifyInstance) => {
    app.addHook("onRequest", (_request, reply, done) => {
      reply.raw.setHeader("x-seen", "yes");
      done();
    });
  };

  it("sees MCP requests too, added in routes() or to env.app()", async () => {
    class Marked extends Empty {
      override routes(app: FastifyInstance): void {
        mark(app);
      }
    }
    await using serving = await new Marked().serve();
    expect(await sees(serving.url)).toBe("yes");
    const app = await new Empty().app();
    mark(app);
    try {
      expect(await sees(await app.listen({ port: 0, host: "127.0.0.1" }))).toBe("yes");
    } finally {
      await app.close();
    }
  });
});

describe("env.app()", () => {
  it("is mounted in a server of its author's, MCP included", async () => {
    const app = await new Empty().app();
    await app.ready();
    const server = createServer((request, response) => {
      if (request.url === "/mine") response.end("mine");
      else app.routing(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect(await (await fetch(`${url}/mine`)).text()).toBe("mine");
      const client = new EnvironmentClient(url);
      expect((await client.card()).name).toBe("Empty");
      await using mcp = await client.mcp();
      expect(await mcp.request("ping", {})).toEqual({});
    } finally {
      await app.close();
      server.closeAllConnections();
      server.close();
    }
  });

  it("answers inject, MCP too, and closes with the environment", async () => {
    const environment = new Empty();
    const app = await environment.app();
    const card = await app.inject({ url: "/.well-known/agent-env.json" });
    expect(card.json()).toMatchObject({ name: "Empty" });
    const hello = await app.inject({
      method: "POST",
      url: "/mcp",
      headers: { accept: "application/json, text/event-stream" },
      payload: HELLO,
    });
    expect(hello.json()).toMatchObject({ result: { serverInfo: { name: "Empty" } } });
    await app.close();
    expect(environment.closed).toBe(1);
  });
});
