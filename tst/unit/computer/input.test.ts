import { describe, expect, it } from "vitest";
import { AgentEnvError } from "../../../src/errors.js";
import { TestComputer } from "../../fakes/computer-calls.js";
import { FullPaintDriver, PaintDriver } from "../../fakes/paint-driver.js";
import { until } from "../../harness/until.js";

/** Makes one operation wait until it is let through. */
function gate(driver: PaintDriver, operation: string) {
  let open = () => {};
  let entered = 0;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  driver.before = async (name) => {
    if (name !== operation) return;
    entered += 1;
    await opened;
  };
  return { open: () => open(), entered: () => entered };
}

describe("input calls", () => {
  it("of five callers, 50 at once, are delivered one at a time and in order", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    let running = 0;
    let most = 0;
    computer.driver.before = async (operation) => {
      if (operation !== "type") return;
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const callers = Array.from({ length: 5 }, (_, index) => computer.caller(`c${index}`));
    await computer.driver.readiness();
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => callers[index % 5]?.ok("computer_type", { text: `n${index}` })),
    );
    expect(computer.driver.inputs).toEqual(Array.from({ length: 50 }, (_, index) => ["type", `n${index}`]));
    expect(most).toBe(1);
  });

  it("that wait longer than queue_wait_s are input_busy, and nothing of them is sent", async () => {
    await using computer = await TestComputer.start(PaintDriver, { settings: { queue_wait_s: 0.02 } });
    const [first, second] = [computer.caller("first"), computer.caller("second")];
    await computer.driver.readiness();
    const slow = gate(computer.driver, "type");
    const typing = first.ok("computer_type", { text: "a" });
    await until(() => slow.entered() === 1);
    expect(await second.refusal("computer_key", { keys: ["b"] })).toEqual(["input_busy", "no"]);
    slow.open();
    await typing;
    expect(computer.driver.inputs).toEqual([["type", "a"]]);
  });

  it("that are cancelled while they wait send nothing, and leave the queue free", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [first, second] = [computer.caller("first"), computer.caller("second")];
    await computer.driver.readiness();
    const slow = gate(computer.driver, "type");
    const typing = first.ok("computer_type", { text: "a" });
    await until(() => slow.entered() === 1);
    const cancelled = new AbortController();
    const waiting = second.call("computer_key", { keys: ["b"] }, cancelled.signal);
    cancelled.abort();
    expect((await waiting).structuredContent).toMatchObject({ code: "timeout", applied: "no" });
    slow.open();
    await typing;
    await second.ok("computer_key", { keys: ["c"] });
    expect(computer.driver.inputs).toEqual([
      ["type", "a"],
      ["press", ["c"]],
    ]);
  });

  it("whose frame no longer fits the display when they have their turn are stale, and nothing is sent", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [first, second] = [computer.caller("first"), computer.caller("second")];
    await second.frame();
    const slow = gate(computer.driver, "type");
    const typing = first.ok("computer_type", { text: "a" });
    await until(() => slow.entered() === 1);
    const click = second.refusal("computer_click", { x: 60, y: 40 });
    await until(() => computer.driver.inputs.length === 0);
    computer.driver.screen = { width: 32, height: 24, scale: 1 };
    slow.open();
    await typing;
    expect(await click).toEqual(["stale_frame", "no"]);
    expect(computer.driver.inputs).toEqual([["type", "a"]]);
  });

  it("are refused as stale while they would still wait, where the display has changed already", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [first, second] = [computer.caller("first"), computer.caller("second")];
    await second.frame();
    computer.driver.screen = { width: 32, height: 24, scale: 1 };
    const slow = gate(computer.driver, "type");
    const typing = first.ok("computer_type", { text: "a" });
    await until(() => slow.entered() === 1);
    expect(await second.refusal("computer_click", { x: 1, y: 1 })).toEqual(["stale_frame", "no"]);
    slow.open();
    await typing;
  });
});

describe("others_since_frame", () => {
  it("counts what other callers delivered since the frame was captured, and not one's own", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    const frame = await me.frame();
    await me.ok("computer_click", { x: 1, y: 1 });
    await other.ok("computer_type", { text: "a" });
    await other.ok("computer_key", { keys: ["b"] });
    await other.refusal("computer_key", { keys: ["ctrl"] });
    expect(await me.ok("computer_click", { x: 1, y: 1 })).toMatchObject({ others_since_frame: 2 });
    expect(await other.ok("computer_click", { x: 1, y: 1, frame_id: frame })).toMatchObject({ others_since_frame: 2 });
    expect(await me.ok("computer_type", { text: "c" })).toMatchObject({ others_since_frame: 3 });
    await me.frame({ region: [0, 0, 5, 5] });
    expect(await me.ok("computer_click", { x: 1, y: 1 })).toMatchObject({ others_since_frame: 3 });
    await me.frame();
    expect(await me.ok("computer_click", { x: 1, y: 1 })).toMatchObject({ others_since_frame: 0 });
  });

  it("counts what is delivered while the capture runs, since the frame may not show it", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await computer.driver.readiness();
    const slow = gate(computer.driver, "capture");
    const frame = me.frame();
    await until(() => slow.entered() === 1);
    await other.ok("computer_type", { text: "a" });
    slow.open();
    await frame;
    expect(await me.ok("computer_click", { x: 1, y: 1 })).toMatchObject({ others_since_frame: 1 });
  });

  it("counts input that may have been delivered, and the input of forwarded tools", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await me.frame();
    computer.driver.before = async (operation) => {
      if (operation === "type") throw new Error("lost");
    };
    await other.refusal("computer_type", { text: "a" });
    computer.driver.inputDelivered(other.caller);
    await computer.driver.inputTurn(other.caller, new AbortController().signal, async (turn) => turn.delivered());
    await computer.driver.inputTurn(other.caller, new AbortController().signal, async () => {});
    expect(await me.ok("computer_click", { x: 1, y: 1 })).toMatchObject({ others_since_frame: 3 });
  });
});

describe("an operation that fails", () => {
  it("with anything else than a refusal is delivery_failed, applied unknown", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    const point = { x: 1, y: 1 };
    for (const [operation, name, args] of [
      ["click", "computer_click", point],
      [
        "drag",
        "computer_drag",
        {
          path: [
            [1, 1],
            [2, 2],
          ],
        },
      ],
      ["scroll", "computer_scroll", { ...point, direction: "up" }],
      ["type", "computer_type", { text: "a" }],
      ["press", "computer_key", { keys: ["a"] }],
      ["move", "computer_pointer_move", point],
      ["button down", "computer_pointer_down", {}],
      ["button up", "computer_pointer_up", {}],
      ["key down", "computer_keyboard_down", { keys: ["a"] }],
    ] as const) {
      computer.driver.before = async (each) => {
        if (each === operation) throw new Error("the connection dropped");
      };
      expect([operation, await me.refusal(name, args)]).toEqual([operation, ["delivery_failed", "unknown"]]);
    }
  });

  it("with a refusal of its own is answered with that, applied no", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    computer.driver.before = async (operation) => {
      if (operation === "type") throw new AgentEnvError("unsupported", "no key for it", { hint: "try another" });
    };
    const result = await computer.caller().call("computer_type", { text: "a" });
    expect(result.structuredContent).toEqual({
      code: "unsupported",
      message: "no key for it",
      retryable: false,
      applied: "no",
      hint: "try another",
    });
  });

  it("with a refusal after something was sent is applied unknown, and not to be retried", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    computer.driver.before = async (operation, _signal, delivery) => {
      if (operation !== "type") return;
      delivery?.sent();
      throw new AgentEnvError("device_unavailable", "the daemon died");
    };
    const result = await computer.caller().call("computer_type", { text: "a" });
    expect(result.structuredContent).toMatchObject({
      code: "device_unavailable",
      applied: "unknown",
      retryable: false,
    });
  });

  it("in a later step of its call is applied unknown, even where that step was refused", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    computer.driver.before = async (operation) => {
      const second = operation === "press" && computer.driver.inputs.length === 1;
      if (second || operation === "button down") throw new AgentEnvError("unsupported", "not that");
    };
    expect(await me.refusal("computer_key", { keys: ["a"], repeat: 3 })).toEqual(["unsupported", "unknown"]);
    expect(await me.refusal("computer_pointer_down", { x: 1, y: 1 })).toEqual(["unsupported", "unknown"]);
    expect(await me.refusal("computer_pointer_down")).toEqual(["unsupported", "no"]);
    expect(computer.driver.inputs).toEqual([
      ["press", ["a"]],
      ["move", { x: 1, y: 1 }],
      // What of the call was sent isn't known here: a button that may be down is let go of.
      ["button up", "left"],
    ]);
  });

  it("as a read is internal, applied no, or its own code", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    await me.frame();
    computer.driver.before = async () => {
      throw new Error("no display");
    };
    expect(await me.refusal("computer_screenshot")).toEqual(["internal", "no"]);
    expect(await me.refusal("computer_pointer_position")).toEqual(["internal", "no"]);
    expect(await me.refusal("computer_click", { x: 1, y: 1 })).toEqual(["internal", "no"]);
    computer.driver.before = async () => {
      throw new AgentEnvError("device_unavailable", "the X server is gone");
    };
    expect(await me.refusal("computer_screenshot")).toEqual(["device_unavailable", "no"]);
    expect(computer.driver.inputs).toEqual([]);
  });
});

describe("an operation that takes too long", () => {
  it("is answered with timeout at the deadline, and other input waits until it is done", async () => {
    await using computer = await TestComputer.start(PaintDriver, { callDeadlineMs: 40 });
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await computer.driver.readiness();
    const slow = gate(computer.driver, "type");
    expect(await me.refusal("computer_type", { text: "late" })).toEqual(["timeout", "unknown"]);
    expect(await other.refusal("computer_key", { keys: ["b"] })).toEqual(["input_busy", "no"]);
    slow.open();
    await until(async () => (await other.call("computer_key", { keys: ["c"] })).isError !== true);
    expect(computer.driver.inputs).toEqual([
      ["type", "late"],
      ["press", ["c"]],
    ]);
  });

  it("as a read is timeout too, applied no", async () => {
    await using computer = await TestComputer.start(PaintDriver, { callDeadlineMs: 30 });
    await computer.driver.readiness();
    gate(computer.driver, "capture");
    expect(await computer.caller().refusal("computer_screenshot")).toEqual(["timeout", "no"]);
  });

  it("keeps its turn as long as it says, also when its call was cancelled", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const [me, other] = [computer.caller("me"), computer.caller("other")];
    await computer.driver.readiness();
    let daemonAnswers = () => {};
    const daemon = new Promise<void>((resolve) => {
      daemonAnswers = resolve;
    });
    computer.driver.before = async (operation, signal, delivery) => {
      if (operation !== "type") return;
      delivery?.sent();
      delivery?.outlast(daemon);
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const cancelled = new AbortController();
    const typing = me.call("computer_type", { text: "a" }, cancelled.signal);
    await new Promise((resolve) => setImmediate(resolve));
    cancelled.abort();
    expect((await typing).structuredContent).toMatchObject({ code: "delivery_failed", applied: "unknown" });
    let pressed = false;
    const next = other.ok("computer_key", { keys: ["b"] }).then(() => {
      pressed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(pressed).toBe(false);
    daemonAnswers();
    await next;
  });
});
