import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TestCaller } from "../../../fakes/computer-calls.js";
import { ReferenceComputer } from "../../../harness/reference.js";
import { until } from "../../../harness/until.js";
import { XTestClient } from "../../../harness/x-client.js";
import { XProxy } from "../../../harness/x-proxy.js";
import { XServer } from "../../../harness/x-server.js";

let server: XServer;
let computer: ReferenceComputer;
beforeEach(async () => {
  server = await XServer.xvfb();
  computer = await ReferenceComputer.start(server.display);
});
afterEach(async () => {
  await computer?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

describe("a connection that drops", () => {
  it("is nothing that a read shows: it is done once more on a new one", async () => {
    await using proxy = await XProxy.start(server.display);
    await using behind = await ReferenceComputer.start(proxy.display);
    const agent = behind.caller();
    await agent.frame();
    for (let round = 0; round < 10; round += 1) {
      expect(proxy.drop()).toBeGreaterThan(0);
      await agent.frame();
      proxy.drop();
      await agent.ok("computer_pointer_position", {});
      proxy.drop();
      // Nothing was sent yet when the connection was found to be gone.
      await agent.ok("computer_key", { keys: ["a"] });
    }
  });

  it("in the middle of input makes its outcome unknown, nothing is sent twice, and what was pressed is up", async () => {
    await using proxy = await XProxy.start(server.display);
    await using behind = await ReferenceComputer.start(proxy.display);
    using x = await XTestClient.open(server.display);
    const window = await x.window();
    const agent = behind.caller();
    await agent.frame();
    const path = [
      [10, 10],
      [1000, 700],
    ];
    const dragging = agent.call("computer_drag", { path, duration_ms: 2000, modifiers: ["Control"] });
    await window.presses(2);
    expect(await x.buttonsDown()).toBe(1);
    proxy.drop();
    const { structuredContent } = await dragging;
    expect(structuredContent).toMatchObject({ code: "delivery_failed", applied: "unknown", retryable: false });
    expect(await x.buttonsDown()).toBe(0);
    expect(await x.keysDown()).toEqual([]);
    const presses = (await window.take()).filter(({ kind }) => kind === "button down");
    expect(presses).toHaveLength(1);
    await agent.ok("computer_click", { x: 5, y: 5 });
  });

  it("again and again under load leaves nothing down once its callers have ended", async () => {
    await using proxy = await XProxy.start(server.display);
    await using behind = await ReferenceComputer.start(proxy.display);
    using x = await XTestClient.open(server.display);
    const callers = Array.from({ length: 5 }, (_, index) => behind.caller(`agent ${index}`));
    for (const caller of callers) await caller.frame();
    let stop = false;
    const codes = new Set<unknown>();
    const load = callers.map((caller, index) => loading(caller, index, codes, () => stop));
    for (let round = 0; round < 20; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20 + ((round * 37) % 120)));
      proxy.drop();
    }
    stop = true;
    await Promise.all(load);
    for (const caller of callers) await caller.caller.end();
    await nothingDown(x);
    expect(codes).toContain("delivery_failed");
    // A read that is dropped twice has no third try.
    const told = ["delivery_failed", "device_unavailable", "stale_frame", "invalid_argument"];
    for (const code of codes) expect(told).toContain(code);
  });
});

describe("an X server that dies", () => {
  it("is device_unavailable while it is away, and works again within a second of its return", async () => {
    const agent = computer.caller();
    await agent.frame();
    for (let round = 0; round < 3; round += 1) {
      await server.kill();
      expect(await agent.refusal("computer_screenshot")).toEqual(["device_unavailable", "no"]);
      expect(await agent.refusal("computer_key", { keys: ["a"] })).toEqual(["device_unavailable", "no"]);
      await server.again();
      const back = performance.now();
      await agent.frame();
      await agent.ok("computer_click", { x: 10, y: 10 });
      await agent.ok("computer_type", { text: "aé" });
      expect(performance.now() - back).toBeLessThan(1000);
    }
  });

  it("under load leaves no key or button down, and no answer but those that say what happened", async () => {
    const callers = Array.from({ length: 5 }, (_, index) => computer.caller(`agent ${index}`));
    for (const caller of callers) await caller.frame();
    let stop = false;
    const codes = new Set<unknown>();
    const load = callers.map((caller, index) => loading(caller, index, codes, () => stop));
    for (let round = 0; round < 4; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await server.kill();
      await new Promise((resolve) => setTimeout(resolve, 50));
      await server.again();
      const back = performance.now();
      const probe = computer.caller("probe");
      await until(
        async () => {
          const shot = await probe.call("computer_screenshot", {});
          return shot.isError !== true && (await probe.call("computer_click", { x: 700, y: 700 })).isError !== true;
        },
        (works) => works,
        { ms: 1000, what: "a screenshot and a click" },
      );
      expect(performance.now() - back).toBeLessThan(1000);
    }
    stop = true;
    await Promise.all(load);
    for (const caller of callers) await caller.caller.end();
    using x = await XTestClient.open(server.display);
    await nothingDown(x);
    for (const code of codes) {
      expect(["device_unavailable", "delivery_failed", "stale_frame", "invalid_argument"]).toContain(code);
    }
  });
});

/** Calls of every kind, one after the other, until it is told to stop; what they are refused with is kept. */
async function loading(caller: TestCaller, index: number, codes: Set<unknown>, stopped: () => boolean): Promise<void> {
  const path = [
    [10, 10],
    [600, 400],
  ];
  while (!stopped()) {
    const results = [
      await caller.call("computer_type", { text: "Load, é and 中" }),
      await caller.call("computer_click", { x: 10 + index, y: 10, count: 2, modifiers: ["Shift"] }),
      await caller.call("computer_keyboard_down", { keys: ["Control"] }),
      await caller.call("computer_drag", { path, duration_ms: 50 }),
      await caller.call("computer_pointer_down", { button: "right" }),
      await caller.call("computer_pointer_up", { button: "right" }),
      await caller.call("computer_keyboard_up", {}),
      await caller.call("computer_screenshot", {}),
    ];
    for (const { isError, structuredContent } of results) if (isError) codes.add(structuredContent?.code);
  }
}

async function nothingDown(x: XTestClient): Promise<void> {
  await until(
    () => x.keysDown(),
    (keys) => keys.length === 0,
    { what: "keys that are up" },
  );
  expect(await x.buttonsDown()).toBe(0);
}
