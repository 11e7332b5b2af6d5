import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { McpClient } from "../../../../src/mcp/client.js";
import { type Computer, envFolder, startComputer } from "../../../harness/computer.js";
import { RawMcp } from "../../../harness/raw-mcp.js";
import { until } from "../../../harness/until.js";
import { XTestClient } from "../../../harness/x-client.js";
import { XServer } from "../../../harness/x-server.js";

/** Keys are held for ten minutes here: only the end of their holder's session lets go of them. */
const env = envFolder(`type = "computer"
driver = "reference"
[session]
idle_s = 1
[settings]
max_hold_ms = 600000
`);

let server: XServer;
let x: XTestClient;
let computer: Computer;
beforeAll(async () => {
  server = await XServer.xvfb();
  x = await XTestClient.open(server.display);
  computer = await startComputer(env.folder, ["--display", server.display]);
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  x?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
  env[Symbol.dispose]();
});
beforeEach(() => nothingDown());

async function nothingDown(ms = 5_000): Promise<void> {
  await until(down, (seen) => seen === "0 keys, 0 buttons", { ms, what: "keys and buttons that are up" });
}

async function down(): Promise<string> {
  const buttons = (await x.buttonsDown()).toString(2).replaceAll("0", "").length;
  return `${(await x.keysDown()).length} keys, ${buttons} buttons`;
}

/** Two keys, one of them off the keymap, and a button. */
const HOLDS = [
  ["computer_keyboard_down", { keys: ["Shift", "ж"] }],
  ["computer_pointer_down", { button: "right" }],
] as const;

async function hold(call: (name: string, args: object) => Promise<unknown>): Promise<void> {
  for (const [name, args] of HOLDS) await call(name, args);
  expect(await down()).toBe("2 keys, 1 buttons");
}

describe("what a session holds down is let go of", () => {
  it("when it is deleted", async () => {
    const agent = await McpClient.connect(computer.url);
    await hold((name, args) => agent.call(name, args as never));
    await agent.close();
    await nothingDown(1_000);
  });

  it("when it has been idle for too long, and not before", async () => {
    const agent = await RawMcp.connect(computer.mcp, {}, {}, false);
    await hold((name, args) => agent.request("tools/call", JSON.stringify({ name, arguments: args })));
    const from = performance.now();
    await nothingDown();
    expect(performance.now() - from).toBeGreaterThan(900);
  });

  it("when its connection is gone, which is told from one that is quiet by its open event stream", async () => {
    const agent = await RawMcp.connect(computer.mcp);
    await hold((name, args) => agent.request("tools/call", JSON.stringify({ name, arguments: args })));
    const from = performance.now();
    await until(
      () => performance.now() - from,
      (ms) => ms > 2_000,
      { every: 100 },
    );
    expect(await down()).toBe("2 keys, 1 buttons");
    agent.drop();
    await nothingDown();
  });

  it("when a session that is in the middle of a call is deleted", async () => {
    const agent = await McpClient.connect(computer.url);
    const held = agent.call("computer_keyboard_down", { keys: ["Control", "ф"], hold_ms: 60_000 } as never);
    held.catch(() => {});
    await until(down, (seen) => seen.startsWith("2 keys"));
    await agent.close();
    await nothingDown(1_000);
  });

  it("when the server is stopped, on a display that stays", async () => {
    const agent = await McpClient.connect(computer.url);
    await hold((name, args) => agent.call(name, args as never));
    await computer[Symbol.asyncDispose]();
    expect(await down()).toBe("0 keys, 0 buttons");
  });
});
