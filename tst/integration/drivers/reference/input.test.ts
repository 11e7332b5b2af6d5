import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NAMED_KEYS } from "../../../../src/computer/keys.js";
import type { JsonObject } from "../../../../src/protocol/tool.js";
import type { TestCaller } from "../../../fakes/computer-calls.js";
import { ReferenceComputer } from "../../../harness/reference.js";
import { type Received, XTestClient, type XTestWindow } from "../../../harness/x-client.js";
import { type Recorded, XRecord } from "../../../harness/x-record.js";
import { XServer } from "../../../harness/x-server.js";

let server: XServer;
let x: XTestClient;
let window: XTestWindow;
let record: XRecord;
let computer: ReferenceComputer;
let agent: TestCaller;
beforeAll(async () => {
  server = await XServer.xvfb();
  x = await XTestClient.open(server.display);
  window = await x.window();
  record = await XRecord.start(server.display);
  computer = await ReferenceComputer.start(server.display);
  agent = computer.caller("agent");
  await agent.frame();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  record?.[Symbol.dispose]();
  x?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await arrived(true);
});

const SHIFT = 0x1;
const LOCK = 0x2;
const CONTROL = 0x4;
const ALT = 0x8;

const keyboard = (settings: JsonObject) => computer.set("computer-keyboard", settings);

/** What has come since the last time, as the server recorded it. It has to be what the application got, event by event. */
async function arrived(motions = false): Promise<Recorded[]> {
  const got = await window.take(motions);
  const recorded = await record.take(got.length, motions);
  const shown = ({ kind, detail, state, x: left, y: top }: Received) => ({ kind, detail, state, x: left, y: top });
  expect(got.map(shown)).toEqual(recorded.map(shown));
  return recorded;
}

/** The key presses that came since the last time, as keysyms. */
async function pressed(): Promise<number[]> {
  const downs = (await arrived()).filter(({ kind }) => kind === "key down");
  return Promise.all(downs.map(({ detail }) => x.keysym(detail)));
}

describe("the pointer", () => {
  it.each([
    ["left", 1],
    ["middle", 2],
    ["right", 3],
    ["back", 8],
    ["forward", 9],
  ])("%s arrives as button %i, where it was asked for", async (button, number) => {
    await agent.ok("computer_click", { x: 321, y: 123, button });
    const [down, up, ...more] = await arrived();
    expect(down).toMatchObject({ kind: "button down", detail: number, x: 321, y: 123 });
    expect(up).toMatchObject({ kind: "button up", detail: number });
    expect(more).toEqual([]);
  });

  it("held modifiers are in the state of every event of a call, and up after it", async () => {
    await agent.ok("computer_scroll", { x: 200, y: 200, direction: "down", amount: 3, modifiers: ["Control"] });
    const wheel = (await arrived()).filter(({ detail, kind }) => detail === 5 && kind.startsWith("button"));
    expect(wheel).toHaveLength(6);
    expect(wheel.every(({ state }) => (state & CONTROL) !== 0)).toBe(true);
    await agent.ok("computer_click", { x: 200, y: 200, count: 3, modifiers: ["Control", "Shift", "Alt"] });
    const clicks = (await arrived()).filter(({ kind }) => kind.startsWith("button"));
    expect(clicks).toHaveLength(6);
    const all = CONTROL | SHIFT | ALT;
    expect(clicks.every(({ state }) => (state & all) === all)).toBe(true);
    expect(await x.keysDown()).toEqual([]);
  });

  it("modifiers that the caller holds are in the state of each of its calls' events, and what others hold in none", async () => {
    const [holder, other] = [computer.caller("holder"), computer.caller("other")];
    await other.frame();
    await holder.ok("computer_keyboard_down", { keys: ["Control", "Shift"] });
    const path = [
      [10, 10],
      [60, 60],
    ];
    const calls = [
      ["computer_click", { x: 5, y: 5, count: 2 }],
      ["computer_scroll", { x: 5, y: 5, direction: "up", amount: 2 }],
      ["computer_drag", { path, duration_ms: 0 }],
      ["computer_pointer_move", { x: 30, y: 30 }],
      ["computer_pointer_down", {}],
      ["computer_pointer_up", {}],
      ["computer_key", { keys: ["F7"], repeat: 2 }],
    ] as const;
    for (const [by, wanted] of [
      [holder, CONTROL | SHIFT],
      [other, 0],
    ] as const) {
      await by.frame();
      for (const [name, args] of calls) {
        const before = await x.keysDown();
        await arrived(true);
        await by.ok(name, args);
        // What is let up for the call and pressed again after it are the modifiers themselves.
        const events = (await arrived(true)).filter(
          ({ kind, detail }) => !kind.startsWith("key") || !before.includes(detail),
        );
        expect(events.length, name).toBeGreaterThan(0);
        const states = new Set(events.map(({ state }) => state & (CONTROL | SHIFT)));
        expect([...states], `${name} by ${by.caller.session}`).toEqual([wanted]);
        expect(await x.keysDown()).toEqual(before);
      }
    }
    await holder.caller.end();
    expect(await x.keysDown()).toEqual([]);
  });

  it("each wheel direction has its button", async () => {
    for (const [direction, button] of Object.entries({ up: 4, down: 5, left: 6, right: 7 })) {
      await agent.ok("computer_scroll", { x: 10, y: 10, direction, amount: 1 });
      expect((await arrived()).map(({ detail }) => detail)).toEqual([button, button]);
    }
  });

  it("a drag of 50 points at 400 ms passes through each, with the button down from the first to the last", async () => {
    const path = Array.from({ length: 50 }, (_, index) => [
      100 + index * 20,
      Math.round(400 + 200 * Math.sin(index / 4)),
    ]);
    const started = performance.now();
    await agent.ok("computer_drag", { path, duration_ms: 400 });
    expect(performance.now() - started).toBeGreaterThan(380);
    const events = await arrived(true);
    const down = events.findIndex(({ kind }) => kind === "button down");
    const up = events.findIndex(({ kind }) => kind === "button up");
    expect([events[down]?.x, events[down]?.y]).toEqual(path[0]);
    expect([events[up]?.x, events[up]?.y]).toEqual(path.at(-1));
    const way = events.slice(down, up + 1);
    for (const [px, py] of path as [number, number][]) {
      const nearest = Math.min(...way.map(({ x: ex, y: ey }) => Math.hypot(ex - px, ey - py)));
      expect(nearest).toBeLessThanOrEqual(2);
    }
  });

  it("100 clicks land in order", async () => {
    const points = Array.from({ length: 100 }, (_, index) => [(index * 37) % 1280, (index * 91) % 800] as const);
    for (const [px, py] of points) await agent.ok("computer_click", { x: px, y: py });
    const downs = (await arrived()).filter(({ kind }) => kind === "button down");
    expect(downs.map((event) => [event.x, event.y])).toEqual(points);
  });
});

describe("keys", () => {
  it("every named key that X has a keysym for arrives with it, and alone", async () => {
    const refused: string[] = [];
    const seen = new Map<string, number>();
    for (const key of NAMED_KEYS) {
      const result = await agent.call("computer_key", { keys: [key] });
      if (result.isError) {
        expect(result.structuredContent).toMatchObject({ code: "unsupported", applied: "no" });
        refused.push(key);
        continue;
      }
      const keysyms = await pressed();
      expect(keysyms, key).toHaveLength(1);
      expect(keysyms[0], key).toBeGreaterThanOrEqual(0xfd00);
      seen.set(key, keysyms[0] ?? 0);
      // Locks are put back.
      if (key.endsWith("Lock")) await agent.ok("computer_key", { keys: [key] });
      await arrived();
    }
    expect(refused).toEqual(["FnLock", "Symbol", "SymbolLock", "Accept"]);
    // By keysymdef.h and XF86keysym.h: some from each of the header's parts.
    expect(Object.fromEntries(seen)).toMatchObject({
      Enter: 0xff0d,
      ArrowUp: 0xff52,
      PageDown: 0xff56,
      Hyper: 0xffed,
      Meta: 0xffeb,
      F1: 0xffbe,
      F24: 0xffd5,
      AltGraph: 0xfe03,
      CrSel: 0xfd1c,
      BrowserStop: 0x1008ff28,
      AudioVolumeMute: 0x1008ff12,
      ContextMenu: 0xff67,
    });
    // Meta and Super are one key in X, and so are Again and Redo.
    expect(new Set(seen.values()).size).toBe(seen.size - 2);
  });

  it("Caps Lock pressed twice leaves it off", async () => {
    await agent.ok("computer_key", { keys: ["CapsLock"] });
    await agent.ok("computer_key", { keys: ["F5"] });
    await agent.ok("computer_key", { keys: ["CapsLock"] });
    await agent.ok("computer_key", { keys: ["F6"] });
    const states = (await arrived()).filter(({ kind }) => kind === "key down").map(({ state }) => state & LOCK);
    // Caps Lock's own press comes before the lock.
    expect(states).toEqual([0, LOCK, LOCK, 0]);
  });

  it("a chord is pressed in order, released in reverse, and its modifiers apply", async () => {
    await agent.ok("computer_key", { keys: ["Control", "Shift", "T"] });
    const events = await arrived();
    expect(events.map(({ kind }) => kind)).toEqual(["key down", "key down", "key down", "key up", "key up", "key up"]);
    const codes = events.map(({ detail }) => detail);
    expect(codes.slice(3)).toEqual(codes.slice(0, 3).reverse());
    expect(events[2]?.state).toBe(CONTROL | SHIFT);
  });

  it("a key tapped for longer than the keyboard waits before it repeats comes once", async () => {
    await keyboard({ tap_hold_ms: 900 });
    try {
      await agent.ok("computer_type", { text: "a" });
      await agent.ok("computer_key", { keys: ["b"] });
      expect(await pressed()).toEqual([0x61, 0x62]);
      expect((await x.ask("GetKeyboardControl")).globalAutoRepeat).toBe(1);
    } finally {
      await keyboard({ tap_hold_ms: 0 });
    }
  });
});
