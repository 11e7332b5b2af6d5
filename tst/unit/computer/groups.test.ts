import { describe, expect, it } from "vitest";
import { ComputerSettings } from "../../../src/computer/settings.js";
import { SetupError } from "../../../src/errors.js";
import { TestComputer } from "../../fakes/computer-calls.js";
import { FakeLog, fakeSession } from "../../fakes/computer-session.js";
import { FullPaintDriver, PaintDriver } from "../../fakes/paint-driver.js";
import { until } from "../../harness/until.js";

function build(Driver: typeof PaintDriver): unknown {
  using session = fakeSession();
  return new Driver({ session, log: new FakeLog(), settings: ComputerSettings.parse({}) });
}

describe("a driver", () => {
  it("with half a group is refused when it is built, naming what is missing", () => {
    class HalfPointer extends PaintDriver {
      async pointerMove(): Promise<void> {}
    }
    class HalfKeyboard extends PaintDriver {
      async keyUp(): Promise<void> {}
    }
    expect(() => build(HalfPointer)).toThrow(/HalfPointer has half of the pointer group: pointerDown, .* is missing/);
    expect(() => build(HalfKeyboard)).toThrow(SetupError);
  });

  it.each([
    ["maxClickCount", 0],
    ["maxWaitMs", 59_999],
    ["maxWaitMs", 100_001],
    ["maxDragPoints", 1],
    ["maxTextLength", 1.5],
    ["buttons", ["right"]],
    ["buttons", ["left", "fourth"]],
    ["keys", ["enter"]],
    ["layouts", ["de"]],
    ["maxDurationMs", 499],
    ["displayModes", [[1, 1]]],
  ])("with %s %j is refused when it is served, naming it", async (feature, value) => {
    class Wrong extends PaintDriver {}
    Object.defineProperty(Wrong.prototype, feature, { get: () => value });
    await expect(TestComputer.start(Wrong)).rejects.toThrow(SetupError);
    await expect(TestComputer.start(Wrong)).rejects.toThrow(feature === "layouts" ? "layout" : /Wrong: /);
  });
});

describe("computer_pointer_*", () => {
  it("move, press and release, with a move first where a point is given", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    await me.ok("computer_pointer_move", { x: 1, y: 2 });
    await me.ok("computer_pointer_down", { x: 3, y: 4, button: "right" });
    await me.ok("computer_pointer_up", { button: "right" });
    await me.ok("computer_pointer_up", { x: 500, y: 0, space: "norm" });
    expect(computer.driver.inputs).toEqual([
      ["move", { x: 1, y: 2 }],
      ["move", { x: 3, y: 4 }],
      ["button down", "right"],
      ["button up", "right"],
      ["move", { x: 32, y: 0 }],
      ["button up", "left"],
    ]);
  });

  it.each([
    ["computer_pointer_move", { x: 1 }, "invalid_argument"],
    ["computer_pointer_move", { x: 64, y: 0 }, "out_of_bounds"],
    ["computer_pointer_down", { x: 1 }, "invalid_argument"],
    ["computer_pointer_up", { y: 1 }, "invalid_argument"],
    ["computer_pointer_down", { button: "back" }, "unsupported"],
    ["computer_pointer_position", { frame_id: "f9" }, "stale_frame"],
  ])("%s with %j is refused as %s, and nothing is sent", async (name, args, code) => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    expect(await me.refusal(name, args)).toEqual([code, "no"]);
    expect(computer.driver.inputs).toEqual([]);
  });

  it("tell where the pointer is, on the screen and in a frame, inside it or not", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    expect(await me.ok("computer_pointer_position")).toEqual({ summary: expect.any(String), screen: { x: 7, y: 9 } });
    await me.frame();
    expect(await me.ok("computer_pointer_position")).toMatchObject({ frame_id: "f1", x: 7, y: 9, inside_frame: true });
    await me.frame({ region: [10, 10, 20, 20] });
    expect(await me.ok("computer_pointer_position")).toMatchObject({
      frame_id: "f2",
      x: -3,
      y: -1,
      inside_frame: false,
    });
    expect(await me.ok("computer_pointer_position", { frame_id: "f1" })).toMatchObject({ x: 7, y: 9 });
    expect((await me.ok("computer_pointer_list")).pointers).toMatchObject([{ id: "default", default: true }]);
  });

  it("leave no button down of a caller that has ended", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.ok("computer_pointer_down");
    await me.ok("computer_pointer_down", { button: "right" });
    await me.ok("computer_pointer_up");
    await me.caller.end();
    expect(computer.driver.inputs.slice(3)).toEqual([["button up", "right"]]);
  });
});

describe("computer_keyboard_*", () => {
  it("keep keys down until they are released, all of them where none is named", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.ok("computer_keyboard_down", { keys: ["shift", "a"] });
    await me.ok("computer_keyboard_down", { keys: ["Alt"] });
    await me.ok("computer_keyboard_up", { keys: ["a"] });
    await me.ok("computer_keyboard_up");
    expect(computer.driver.inputs).toEqual([
      ["key down", ["Shift", "a"]],
      ["key down", ["Alt"]],
      ["key up", ["a"]],
      ["key up", ["Alt", "Shift"]],
    ]);
    expect(await me.refusal("computer_keyboard_up")).toEqual(["invalid_argument", "no"]);
  });

  it("hold keys for a time within the call, and no longer than is allowed", async () => {
    await using computer = await TestComputer.start(FullPaintDriver, { settings: { max_hold_ms: 100 } });
    const me = computer.caller();
    await me.ok("computer_keyboard_down", { keys: ["Control", "b"], hold_ms: 5 });
    expect(computer.driver.inputs).toEqual([
      ["key down", ["Control", "b"]],
      ["key up", ["b", "Control"]],
    ]);
    expect(await me.refusal("computer_keyboard_down", { keys: ["a"], hold_ms: 101 })).toEqual([
      "invalid_argument",
      "no",
    ]);
    expect(await me.refusal("computer_keyboard_down", { keys: ["ctrl"] })).toEqual(["invalid_argument", "no"]);
  });

  it("release what a cancelled call held", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    const cancelled = new AbortController();
    const held = me.call("computer_keyboard_down", { keys: ["a"], hold_ms: 9_000 }, cancelled.signal);
    await until(() => computer.driver.down.size === 1);
    cancelled.abort();
    await held;
    expect([...computer.driver.down]).toEqual([]);
  });

  it("release keys that are still held after max_hold_ms, once the queue is free", async () => {
    await using computer = await TestComputer.start(FullPaintDriver, { settings: { max_hold_ms: 20 } });
    const me = computer.caller();
    await me.ok("computer_keyboard_down", { keys: ["Shift"] });
    expect([...computer.driver.down]).toEqual(["Shift"]);
    let open = () => {};
    const slow = new Promise<void>((resolve) => {
      open = resolve;
    });
    computer.driver.before = async (operation) => (operation === "type" ? slow : undefined);
    const typing = me.ok("computer_type", { text: "a" });
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect([...computer.driver.down]).toEqual(["Shift"]);
    open();
    await typing;
    await until(() => computer.driver.down.size === 0);
    expect(computer.driver.inputs.at(-1)).toEqual(["key up", ["Shift"]]);
    expect(await me.refusal("computer_keyboard_up")).toEqual(["invalid_argument", "no"]);
  });

  it("release each key max_hold_ms after it was pressed last, whatever is pressed meanwhile", async () => {
    await using computer = await TestComputer.start(FullPaintDriver, { settings: { max_hold_ms: 200 } });
    const me = computer.caller();
    const from = performance.now();
    await me.ok("computer_keyboard_down", { keys: ["Shift"] });
    await me.ok("computer_keyboard_down", { keys: ["Alt"] });
    let other = 0;
    while (computer.driver.down.has("Shift") && performance.now() - from < 1_000) {
      await me.ok("computer_keyboard_down", { keys: ["Alt"] });
      await me.ok("computer_keyboard_down", { keys: [`F${(other % 12) + 1}`] });
      other += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(performance.now() - from).toBeGreaterThanOrEqual(195);
    expect(performance.now() - from).toBeLessThan(400);
    expect([...computer.driver.down]).toContain("Alt");
    await until(() => computer.driver.down.size === 0);
  });

  it("stay down of no call whose caller ended before it was answered, and neither do buttons", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    for (const [name, args, operation] of [
      ["computer_keyboard_down", { keys: ["Shift"] }, "key down"],
      ["computer_pointer_down", {}, "button down"],
    ] as const) {
      const me = computer.caller();
      let ending: Promise<void> | undefined;
      computer.driver.before = async (each) => {
        if (each === operation) ending = me.caller.end();
      };
      await me.ok(name, args);
      await ending;
      await until(() => computer.driver.inputs.at(-1)?.[0] === operation.replace("down", "up"));
      expect(computer.driver.down.size).toBe(0);
    }
  });

  it("release a caller's keys when it ends, tried again where that fails", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await me.ok("computer_keyboard_down", { keys: ["Shift", "a"] });
    await other.ok("computer_keyboard_down", { keys: ["b", "Shift"] });
    let failures = 1;
    computer.driver.before = async (operation) => {
      if (operation === "key up" && failures-- > 0) throw new Error("not now");
    };
    await me.caller.end();
    await until(() => !computer.driver.down.has("a"));
    expect([...computer.driver.down]).toEqual(["Shift", "b"]);
    expect(computer.driver.inputs.at(-1)).toEqual(["key up", ["a"]]);
    expect(computer.log.lines.map((line) => line.level)).toEqual(["warn"]);
  });

  it("let a key stay down that another caller still holds", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await me.ok("computer_keyboard_down", { keys: ["Shift", "a"] });
    await other.ok("computer_keyboard_down", { keys: ["Shift"] });
    const result = await me.ok("computer_keyboard_up");
    expect(result.effect).toEqual({ detail: "another caller still holds Shift" });
    expect([...computer.driver.down]).toEqual(["Shift"]);
    expect(await me.refusal("computer_keyboard_up", { keys: ["Shift"] })).toEqual(["invalid_argument", "no"]);
    await other.caller.end();
    expect([...computer.driver.down]).toEqual([]);
  });

  it("tell a driver which keys its caller holds, and which others do", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await me.ok("computer_keyboard_down", { keys: ["Shift", "a"] });
    await other.ok("computer_keyboard_down", { keys: ["Shift", "Alt"] });
    let held: unknown;
    computer.driver.before = async (operation, _signal, delivery) => {
      if (operation === "type") held = delivery?.held;
    };
    await me.ok("computer_type", { text: "x" });
    expect(held).toEqual({ own: ["Shift", "a"], others: ["Alt"] });
  });

  it("let go at once of what a failed call may have pressed, but not of what its caller held before", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.ok("computer_keyboard_down", { keys: ["Shift"] });
    const lost = ["key down", "button down"];
    computer.driver.before = async (operation) => {
      if (lost.includes(operation)) throw new Error("lost");
    };
    expect(await me.refusal("computer_keyboard_down", { keys: ["Shift", "a", "b"] })).toEqual([
      "delivery_failed",
      "unknown",
    ]);
    expect(await me.refusal("computer_pointer_down")).toEqual(["delivery_failed", "unknown"]);
    // The next input comes after it.
    await me.ok("computer_type", { text: "x" });
    expect(computer.driver.inputs.slice(1).map(([operation, what]) => [operation, what])).toEqual([
      ["key up", ["b", "a"]],
      ["button up", "left"],
      ["type", "x"],
    ]);
    expect([...computer.driver.down]).toEqual(["Shift"]);
  });

  it("take keys that a failed call may have pressed as held, where letting go of them fails too", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    let failing = true;
    computer.driver.before = async (operation) => {
      if (failing && operation.startsWith("key ")) throw new Error("lost");
    };
    expect(await me.refusal("computer_keyboard_down", { keys: ["a"] })).toEqual(["delivery_failed", "unknown"]);
    failing = false;
    await me.caller.end();
    expect(computer.driver.inputs).toEqual([["key up", ["a"]]]);
  });

  it("don't keep a computer from closing whose input never ends", async () => {
    const computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.ok("computer_keyboard_down", { keys: ["Shift"] });
    computer.driver.before = async (operation) => (operation === "type" ? new Promise(() => {}) : undefined);
    void me.call("computer_type", { text: "a" });
    const from = performance.now();
    await computer[Symbol.asyncDispose]();
    expect(performance.now() - from).toBeLessThan(1_900);
  });

  it("leave nothing down when the computer is closed", async () => {
    const computer = await TestComputer.start(FullPaintDriver);
    await computer.caller().ok("computer_keyboard_down", { keys: ["Shift"] });
    await computer[Symbol.asyncDispose]();
    expect([...computer.driver.down]).toEqual([]);
  });
});
