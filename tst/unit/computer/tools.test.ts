import sharp from "sharp";
import { describe, expect, it } from "vitest";
import type { Application } from "../../../src/environment/application.js";
import { imageBytes, TestComputer } from "../../fakes/computer-calls.js";
import { FullPaintDriver, PaintDriver } from "../../fakes/paint-driver.js";

const SEVEN = [
  "computer_screenshot",
  "computer_click",
  "computer_drag",
  "computer_scroll",
  "computer_type",
  "computer_key",
  "computer_wait",
];
const POINTER = ["move", "down", "up", "position", "list"].map((name) => `computer_pointer_${name}`);
const KEYBOARD = ["computer_keyboard_down", "computer_keyboard_up"];

function names(application: Application): string[] {
  return application.tools.map((tool) => tool.definition.name);
}

async function pixel(image: Buffer, x: number, y: number): Promise<number[]> {
  const { data, info } = await sharp(image).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return [...data.subarray((y * info.width + x) * 3, (y * info.width + x) * 3 + 3)];
}

describe("the tools", () => {
  it("are the seven without groups, and come with the groups that a driver has", async () => {
    await using bare = await TestComputer.start(PaintDriver);
    await using full = await TestComputer.start(FullPaintDriver);
    expect(names(bare.application)).toEqual(SEVEN);
    expect(names(full.application)).toEqual([...SEVEN, ...POINTER, ...KEYBOARD]);
  });

  it("list input and output schemas, and say which of them only read", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    for (const { definition } of computer.application.tools) {
      expect(definition.inputSchema.type).toBe("object");
      expect(definition.outputSchema?.type).toBe("object");
      expect(JSON.stringify(definition)).not.toContain("9007199254740991");
      const reads = /_(screenshot|wait|position|list)$/.test(definition.name);
      expect(definition.annotations).toEqual(
        reads
          ? { readOnlyHint: true, openWorldHint: false }
          : { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
      );
    }
  });

  it("take null for what may be left out, and refuse what they don't know rather than act without it", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    await me.ok("computer_click", { x: 1, y: 1, frame_id: null, button: null, modifiers: null, space: null });
    const typo = await me.call("computer_click", { x: 1, y: 1, click_count: 2 });
    expect(typo.structuredContent).toMatchObject({ code: "invalid_argument", applied: "no" });
    expect(typo.structuredContent?.message).toMatch(/"click_count"; it takes x, y, .*count/);
    expect(computer.driver.inputs).toHaveLength(1);
    expect(await me.refusal("computer_click", { x: 1, y: 1, count: null })).toEqual(["invalid_argument", "no"]);
    expect(await me.refusal("computer_click", { x: "1", y: 1 })).toEqual(["invalid_argument", "no"]);
  });
});

describe("computer_screenshot", () => {
  it("answers a frame: the image, its size, the display and when", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const result = await computer.caller().call("computer_screenshot");
    expect(result.structuredContent).toMatchObject({
      frame_id: "f1",
      width: 64,
      height: 48,
      display: { width: 64, height: 48, scale: 1 },
      summary: expect.stringContaining("f1"),
    });
    expect(result.content[0]).toEqual({ type: "text", text: result.structuredContent?.summary });
    expect(new Date(String(result.structuredContent?.captured_at)).getTime()).toBeLessThanOrEqual(Date.now());
    expect(await pixel(imageBytes(result), 20, 30)).toEqual([20, 30, 0]);
  });

  it("is native: as many pixels as the display times its scale", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    computer.driver.screen = { width: 33, height: 21, scale: 1.5 };
    const result = await computer.caller().ok("computer_screenshot");
    expect([result.width, result.height]).toEqual([50, 32]);
  });

  it("cuts a region out of a frame, its pixels the frame's, without another capture", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    const parent = await me.frame();
    const captures = computer.driver.captures;
    const crop = await me.call("computer_screenshot", { region: [10, 20, 30.5, 40], frame_id: parent });
    expect(crop.structuredContent).toMatchObject({ frame_id: "f2", width: 21, height: 20, parent_frame_id: parent });
    expect(await pixel(imageBytes(crop), 20, 19)).toEqual([30, 39, 0]);
    const again = await me.call("computer_screenshot", { region: [500, 500, 1000, 1000], space: "norm" });
    expect(again.structuredContent).toMatchObject({ width: 11, height: 10, parent_frame_id: "f2" });
    expect(await pixel(imageBytes(again), 0, 0)).toEqual([20, 30, 0]);
    expect(computer.driver.captures).toBe(captures);
  });

  it("answers a JPEG where one is asked for", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const result = await computer.caller().call("computer_screenshot", { format: "jpeg", quality: 60 });
    expect(result.content[1]).toMatchObject({ type: "image", mimeType: "image/jpeg" });
    expect((await sharp(imageBytes(result)).metadata()).format).toBe("jpeg");
  });

  it.each([
    [{ quality: 50 }, "invalid_argument"],
    [{ format: "jpeg", quality: 96 }, "invalid_argument"],
    [{ format: "gif" }, "invalid_argument"],
    [{ frame_id: "f1" }, "invalid_argument"],
    [{ region: [0, 0, 5] }, "invalid_argument"],
    [{ region: [0, 0, 65, 48] }, "out_of_bounds"],
    [{ region: [5, 5, 5, 6] }, "out_of_bounds"],
    [{ region: [0, 0, 5, 5], frame_id: "f99" }, "stale_frame"],
    [{ region: [0, 0, 5, 5], norm_scale: 0 }, "invalid_argument"],
  ])("with %j is refused as %s", async (args, code) => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    expect(await me.refusal("computer_screenshot", args)).toEqual([code, "no"]);
  });

  it("refuses to cut a frame of a display that has changed", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    computer.driver.screen = { width: 60, height: 48, scale: 1 };
    expect(await me.refusal("computer_screenshot", { region: [0, 0, 5, 5] })).toEqual(["stale_frame", "no"]);
  });

  it("is internal where the driver's capture is not the display's size, and tried again where the display just changed", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    let displays = 0;
    computer.driver.before = async (operation) => {
      if (operation === "display") displays += 1;
      if (operation === "capture" && displays === 1) computer.driver.screen = { width: 32, height: 24, scale: 1 };
    };
    await computer.driver.readiness();
    displays = 0;
    computer.driver.screen = { width: 64, height: 48, scale: 1 };
    expect(await me.ok("computer_screenshot")).toMatchObject({ width: 32, display: { width: 32, height: 24 } });
    computer.driver.capture = async () => ({ raw: Buffer.alloc(12), layout: "RGB", width: 2, height: 2 });
    expect(await me.refusal("computer_screenshot")).toEqual(["internal", "no"]);
  });
});

describe("computer_click and computer_scroll", () => {
  it("act at the screen's pixel under a frame's point, with button, count and modifiers", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    const frame = await me.frame();
    const result = await me.ok("computer_click", {
      x: 10.7,
      y: 20,
      frame_id: frame,
      button: "right",
      count: 2,
      modifiers: ["shift"],
    });
    expect(result).toEqual({
      summary: expect.stringContaining("(10.7, 20) of f1"),
      applied: "yes",
      delivery: "foreground",
      others_since_frame: 0,
    });
    await me.ok("computer_scroll", { direction: "down", x: 1000, y: 0, space: "norm" });
    expect(computer.driver.inputs).toEqual([
      ["click", { x: 10, y: 20 }, "right", 2, ["Shift"]],
      ["scroll", { x: 63, y: 0 }, "down", 3, []],
    ]);
  });

  it("map a point of a crop of a crop back to the screen", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    await me.frame({ region: [10, 20, 40, 48] });
    await me.frame({ region: [5, 5, 20, 20] });
    await me.ok("computer_click", { x: 1, y: 2 });
    expect(computer.driver.inputs).toEqual([["click", { x: 16, y: 27 }, "left", 1, []]]);
  });

  it("answer a fresh frame where one is asked for, which shows what was done", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    const result = await me.call("computer_click", { x: 3, y: 4, screenshot: true });
    expect(result.structuredContent).toMatchObject({ frame: { frame_id: "f2", width: 64 } });
    expect(await pixel(imageBytes(result), 3, 4)).toEqual([255, 0, 0]);
  });

  it("that were done say so also where the screenshot after them fails", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    computer.driver.before = async (operation) => {
      if (operation === "capture") throw new Error("no picture");
    };
    const result = await me.ok("computer_click", { x: 3, y: 4, screenshot: true });
    expect([result.applied, result.summary]).toEqual([
      "yes",
      expect.stringContaining("screenshot after it failed (internal"),
    ]);
    expect("frame" in result).toBe(false);
  });

  it("carry the effect that the driver could confirm", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    computer.driver.effect = { focus_changed: true, detail: "a menu opened" };
    expect(await me.ok("computer_click", { x: 3, y: 4 })).toMatchObject({ effect: computer.driver.effect });
  });

  it.each([
    [{}, "invalid_argument"],
    [{ x: 1 }, "invalid_argument"],
    [{ x: 64, y: 0 }, "out_of_bounds"],
    [{ x: -0.5, y: 0 }, "out_of_bounds"],
    [{ x: 1001, y: 0, space: "norm" }, "out_of_bounds"],
    [{ x: 1, y: 1, norm_scale: 0 }, "invalid_argument"],
    [{ x: 1, y: 1, frame_id: "f7" }, "stale_frame"],
    [{ x: 1, y: 1, button: "middle" }, "unsupported"],
    [{ x: 1, y: 1, count: 0 }, "invalid_argument"],
    [{ x: 1, y: 1, count: 4 }, "invalid_argument"],
    [{ x: 1, y: 1, modifiers: ["ctrl"] }, "invalid_argument"],
    [{ x: 1, y: 1, space: "screen" }, "invalid_argument"],
  ])("with %j are refused as %s, and nothing is sent", async (args, code) => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    expect(await me.refusal("computer_click", args)).toEqual([code, "no"]);
    expect(await me.refusal("computer_scroll", { direction: "up", amount: 101, x: 1, y: 1 })).toEqual([
      "invalid_argument",
      "no",
    ]);
    expect(computer.driver.inputs).toEqual([]);
  });

  it("are refused before a first frame, as stale", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    expect(await computer.caller().refusal("computer_click", { x: 1, y: 1 })).toEqual(["stale_frame", "no"]);
  });

  it("act where the pointer is without a point, on a computer with the pointer group", async () => {
    await using computer = await TestComputer.start(FullPaintDriver);
    const me = computer.caller();
    const result = await me.ok("computer_click");
    await me.ok("computer_scroll", { direction: "up" });
    expect(result.summary).toContain("screen (7, 9)");
    expect(computer.driver.inputs).toEqual([
      ["click", { x: 7, y: 9 }, "left", 1, []],
      ["scroll", { x: 7, y: 9 }, "up", 3, []],
    ]);
    expect(await me.refusal("computer_click", { frame_id: "f1" })).toEqual(["invalid_argument", "no"]);
  });
});

describe("computer_drag", () => {
  it("goes along its points in the time it says, or in the usual time", async () => {
    await using computer = await TestComputer.start(PaintDriver, { settings: { drag_duration_ms: 123 } });
    const me = computer.caller();
    await me.frame();
    await me.ok("computer_drag", {
      path: [
        [1, 2],
        [3, 4],
      ],
      duration_ms: 0,
    });
    await me.ok("computer_drag", {
      path: [
        [0, 0],
        [500, 500],
        [1000, 1000],
      ],
      space: "norm",
      modifiers: ["Alt"],
    });
    expect(computer.driver.inputs).toEqual([
      [
        "drag",
        [
          { x: 1, y: 2 },
          { x: 3, y: 4 },
        ],
        "left",
        0,
        [],
      ],
      [
        "drag",
        [
          { x: 0, y: 0 },
          { x: 32, y: 24 },
          { x: 63, y: 47 },
        ],
        "left",
        123,
        ["Alt"],
      ],
    ]);
  });

  it.each([
    [{ path: [[1, 1]] }, "invalid_argument"],
    [{ path: [[1, 1], [2]] }, "invalid_argument"],
    [{ path: Array.from({ length: 6 }, () => [1, 1]) }, "invalid_argument"],
    [
      {
        path: [
          [1, 1],
          [64, 2],
        ],
      },
      "out_of_bounds",
    ],
    [
      {
        path: [
          [1, 1],
          [2, 2],
        ],
        duration_ms: 10_001,
      },
      "invalid_argument",
    ],
    [
      {
        path: [
          [1, 1],
          [2, 2],
        ],
        button: "back",
      },
      "unsupported",
    ],
  ])("with %j is refused as %s, and nothing is sent", async (args, code) => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    expect(await me.refusal("computer_drag", args)).toEqual([code, "no"]);
    expect(computer.driver.inputs).toEqual([]);
  });
});

describe("computer_type and computer_key", () => {
  it("hand on text as it is and chords in W3C case, as often as asked", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    expect((await me.ok("computer_type", { text: "a\n\t😀" })).summary).toContain("4 characters");
    await me.ok("computer_key", { keys: ["control", "s"] });
    await me.ok("computer_key", { keys: ["Tab"], repeat: 3 });
    expect(computer.driver.inputs).toEqual([
      ["type", "a\n\t😀"],
      ["press", ["Control", "s"]],
      ["press", ["Tab"]],
      ["press", ["Tab"]],
      ["press", ["Tab"]],
    ]);
  });

  it.each([
    ["computer_type", { text: "" }, "invalid_argument"],
    ["computer_type", { text: "x".repeat(10_001) }, "invalid_argument"],
    ["computer_type", { text: "a\u001bb" }, "invalid_argument"],
    ["computer_type", { text: "\ud83d" }, "invalid_argument"],
    ["computer_key", { keys: [] }, "invalid_argument"],
    ["computer_key", { keys: ["ctrl", "s"] }, "invalid_argument"],
    ["computer_key", { keys: ["Enter"], repeat: 101 }, "invalid_argument"],
    ["computer_key", { keys: "Enter" }, "invalid_argument"],
  ])("%s with %j is refused as %s, and nothing is sent", async (name, args, code) => {
    await using computer = await TestComputer.start(PaintDriver);
    expect(await computer.caller().refusal(name, args)).toEqual([code, "no"]);
    expect(computer.driver.inputs).toEqual([]);
  });

  it("name the control characters by their code, and quote no text", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const result = await computer.caller().call("computer_type", { text: "secret\u001b\u0085" });
    expect(String(result.structuredContent?.message)).toMatch(/U\+001B, U\+0085$/);
    expect(JSON.stringify([result, computer.log.lines])).not.toContain("secret");
  });

  it("take as many characters as the card says, counting code points", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    await computer.caller().ok("computer_type", { text: "😀".repeat(10_000) });
  });

  it("that would take longer than 100 s are refused before anything is sent", async () => {
    await using computer = await TestComputer.start(FullPaintDriver, { settings: { tap_hold_ms: 90 } });
    const me = computer.caller();
    await me.ok("computer_type", { text: "x".repeat(1_000) });
    expect(await me.refusal("computer_type", { text: "x".repeat(1_001) })).toEqual(["invalid_argument", "no"]);
    expect(computer.driver.inputs).toHaveLength(1);
  });
});

describe("computer_wait", () => {
  it("waits, and looks where it is asked to", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    const from = performance.now();
    expect(await me.ok("computer_wait", { ms: 30 })).toEqual({ summary: "Waited 30 ms", waited_ms: 30 });
    expect(performance.now() - from).toBeGreaterThan(28);
    expect(await me.ok("computer_wait", { ms: 0, screenshot: true })).toMatchObject({ frame: { frame_id: "f1" } });
  });

  it("takes up to the longest wait, and no negative one", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    for (const ms of [-1, 60_001, 1.5]) {
      expect(await computer.caller().refusal("computer_wait", { ms })).toEqual(["invalid_argument", "no"]);
    }
  });

  it("ends at once when the call is cancelled, as a screenshot does", async () => {
    await using computer = await TestComputer.start(PaintDriver);
    const me = computer.caller();
    await me.frame();
    for (const [name, args] of [
      ["computer_wait", { ms: 50_000 }],
      ["computer_screenshot", {}],
    ] as const) {
      const cancelled = new AbortController();
      computer.driver.before = (_operation, signal) =>
        new Promise((_resolve, reject) => {
          if (signal.aborted) reject(signal.reason);
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      const from = performance.now();
      const call = me.call(name, args, cancelled.signal);
      setImmediate(() => cancelled.abort());
      expect((await call).structuredContent).toMatchObject({ code: "timeout", applied: "no" });
      expect(performance.now() - from).toBeLessThan(500);
    }
  });
});
