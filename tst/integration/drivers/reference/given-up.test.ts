import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ReferenceComputer } from "../../../harness/reference.js";
import { until } from "../../../harness/until.js";
import { XTestClient, type XTestWindow } from "../../../harness/x-client.js";
import { XServer } from "../../../harness/x-server.js";

let server: XServer;
let x: XTestClient;
let window: XTestWindow;
beforeAll(async () => {
  server = await XServer.xvfb();
  x = await XTestClient.open(server.display);
  window = await x.window();
});
afterAll(async () => {
  x?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

/** Calls that have something down for long, and how many presses there are of each by the time that it is given up. */
const CALLS: [name: string, args: object, presses: number][] = [
  [
    "computer_drag",
    {
      path: [
        [10, 10],
        [900, 700],
      ],
      duration_ms: 5_000,
      modifiers: ["Shift"],
    },
    2,
  ],
  [
    "computer_drag",
    {
      path: [
        [10, 10],
        [900, 700],
      ],
      duration_ms: 5_000,
      button: "forward",
    },
    1,
  ],
  ["computer_keyboard_down", { keys: ["Control", "a"], hold_ms: 5_000 }, 2],
  ["computer_key", { keys: ["Control", "Shift", "ж"], repeat: 9 }, 3],
  ["computer_type", { text: "ABCDEFGH" }, 2],
  ["computer_type", { text: "жЖ中€" }, 1],
];

describe.each([
  ["cancelled", 110_000],
  ["not done at its deadline", 600],
] as const)("a call that is %s", (how, deadlineMs) => {
  it.each(CALLS)("leaves no button and no key of %s down: %j", async (name, args, presses) => {
    await using computer = await ReferenceComputer.start(server.display, { tap_hold_ms: 900 }, deadlineMs);
    const agent = computer.caller();
    await agent.frame();
    await window.take();
    const given = new AbortController();
    const call = agent.call(name, args as never, given.signal);
    await window.presses(presses);
    if (how === "cancelled") given.abort();
    const { isError, structuredContent } = await call;
    expect(isError).toBe(true);
    expect(structuredContent).toMatchObject({ applied: "unknown", retryable: false });
    await nothingDown();
    // Nothing of it comes after, and what it set aside is as before.
    const ups = (await window.take()).length;
    await agent.ok("computer_pointer_position", {});
    expect(await window.take()).toEqual([]);
    expect(ups).toBeGreaterThanOrEqual(presses * 2);
    expect((await x.ask("GetKeyboardControl")).globalAutoRepeat).toBe(1);
  });
});

describe("what somebody else holds", () => {
  it("is down again after a call that was cancelled while it had let it up, and the lock that it took off is on", async () => {
    await using computer = await ReferenceComputer.start(server.display, { tap_hold_ms: 900 });
    const [holder, agent] = [computer.caller("holder"), computer.caller("agent")];
    await agent.ok("computer_key", { keys: ["CapsLock"] });
    await holder.ok("computer_keyboard_down", { keys: ["Control"] });
    const [control = 0] = await x.keysDown();
    const given = new AbortController();
    await window.take();
    const call = agent.call("computer_type", { text: "abc" }, given.signal);
    await window.presses(1);
    expect(await x.keysDown()).not.toContain(control);
    given.abort();
    await call;
    await until(
      () => x.keysDown(),
      (keys) => keys.join() === String(control),
      { what: "Control alone" },
    );
    await holder.caller.end();
    await nothingDown();
    const xkb = await x.extension("xkb");
    const { lockedMods } = await new Promise<{ lockedMods: number }>((resolve) =>
      xkb.GetState(xkb.UseCoreKbd, (_: unknown, state: { lockedMods: number }) => resolve(state)),
    );
    expect(lockedMods & 2).toBe(2);
    await agent.ok("computer_key", { keys: ["CapsLock"] });
  });
});

async function nothingDown(): Promise<void> {
  await until(
    () => x.keysDown(),
    (keys) => keys.length === 0,
    { what: "keys that are up" },
  );
  expect(await x.buttonsDown()).toBe(0);
}
