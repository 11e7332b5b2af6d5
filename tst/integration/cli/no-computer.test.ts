import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { McpClient } from "../../../src/mcp/client.js";
import { agentenv, envFolder, type Ready } from "../../harness/computer.js";

describe("an env that is a class, to a command that wants a computer", () => {
  const command = agentenv(["up", "bundles/shop", "--port", "0", "--json"]);
  let url: string;
  beforeAll(async () => {
    ({ url } = await command.ready());
  });
  afterAll(() => command[Symbol.asyncDispose]());

  it.each([
    ["shot", ["--out", join(tmpdir(), "never.png")], 1],
    ["compare", [], 1],
    ["probe", [], 2],
  ] as const)("is said to be no computer by %s", async (name, args, code) => {
    const exit = await agentenv([name, url, ...args]).exited;
    expect(exit).toMatchObject({ code, stdout: "" });
    expect(exit.stderr).toMatch(/^agentenv: the env at http.* is no computer\n {2}agentenv tools http/);
  });
});

describe("a server that has as many sessions as it takes", () => {
  const env = envFolder('type = "computer"\ndriver = "reference"\n[session]\nmax = 1\n');
  const command = agentenv(["up", env.folder, "--port", "0", "--json"]);
  let ready: Ready;
  beforeAll(async () => {
    ready = await command.ready();
  });
  afterAll(async () => {
    await command[Symbol.asyncDispose]();
    env[Symbol.dispose]();
  });

  it("is quoted in its own words, with its own hint", async () => {
    await using _session = await McpClient.connect(ready.url);
    for (const [name, code] of [
      ["tools", 1],
      ["probe", 2],
    ] as const) {
      const exit = await agentenv([name, ready.url]).exited;
      expect(exit).toMatchObject({ code, stdout: "" });
      expect(exit.stderr).toMatch(/: 1 sessions are open already\n {2}\S/);
      expect(exit.stderr).not.toMatch(/jsonrpc|Streamable|\{/);
    }
  });
});
