import { describe, expect, it } from "vitest";
import { checkCurrent, FrameStore } from "../../../src/computer/frames.js";
import { Picture } from "../../../src/computer/images.js";
import { framePoint, frameRegion, type PointSpace, pointSpace } from "../../../src/computer/spaces.js";
import { Caller } from "../../../src/environment/caller.js";
import { AgentEnvError } from "../../../src/errors.js";

const FRAME: PointSpace = { space: "frame", normScale: 1000 };
const NORM: PointSpace = { space: "norm", normScale: 1000 };

function picture(width: number, height: number): Picture {
  return Picture.of({ raw: Buffer.alloc(width * height * 3), layout: "RGB", width, height });
}

function captured(width = 100, height = 80, display = { width, height, scale: 1 }) {
  const store = new FrameStore();
  const caller = new Caller("me");
  const add = (by = caller) =>
    store.addCapture(by, {
      picture: picture(width, height),
      display,
      capturedAt: new Date(0),
      inputs: { total: 0, byCaller: new Map() },
    });
  return { store, caller, add, frame: add() };
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return `${thrown.code} ${thrown.applied}`;
    throw thrown;
  }
  return "fine";
}

describe("frames", () => {
  it("are numbered from f1, and the last 64 are kept", () => {
    const { store, caller, add, frame } = captured();
    expect(frame.id).toBe("f1");
    for (let n = 2; n <= 64; n += 1) add();
    expect(store.get("f1", caller)).toBe(frame);
    add();
    expect(code(() => store.get("f1", caller))).toBe("stale_frame no");
    expect([store.get("f2", caller).id, store.get(null, caller).id]).toEqual(["f2", "f65"]);
  });

  it("are each caller's own where none is named, and anyone's by their id", () => {
    const { store, caller, add, frame } = captured();
    const other = new Caller("other");
    expect(code(() => store.get(null, other))).toBe("stale_frame no");
    expect([store.latest(other), store.get("f1", other)]).toEqual([undefined, frame]);
    add(other);
    expect([store.get(null, caller).id, store.get(null, other).id]).toEqual(["f1", "f2"]);
    expect(code(() => store.get("f99", other))).toBe("stale_frame no");
  });

  it("tell a caller whose latest is gone to take another", () => {
    const { store, caller, add } = captured();
    const other = new Caller("other");
    for (let n = 0; n < 64; n += 1) add(other);
    expect([store.latest(caller), code(() => store.get(null, caller))]).toEqual([undefined, "stale_frame no"]);
  });

  it("are stale once the display has another size or scale", () => {
    const { frame } = captured();
    expect(code(() => checkCurrent(frame, { width: 100, height: 80, scale: 1 }))).toBe("fine");
    for (const now of [
      { width: 101, height: 80, scale: 1 },
      { width: 100, height: 81, scale: 1 },
      { width: 100, height: 80, scale: 2 },
    ]) {
      expect(code(() => checkCurrent(frame, now))).toBe("stale_frame no");
    }
  });

  it("map their pixels to the screen's, at a scale of 2 and of 1.5", () => {
    const twice = captured(200, 160, { width: 100, height: 80, scale: 2 }).frame;
    expect([twice.toScreen([0, 0]), twice.toScreen([3, 5]), twice.toScreen([199, 159])]).toEqual([
      { x: 0, y: 0 },
      { x: 1, y: 2 },
      { x: 99, y: 79 },
    ]);
    const half = captured(150, 120, { width: 100, height: 80, scale: 1.5 }).frame;
    expect([half.toScreen([149, 119]), half.fromScreen({ x: 99, y: 79 })]).toEqual([{ x: 99, y: 79 }, [148, 118]]);
  });

  it("cut from others map back through all of them", () => {
    const { store, caller, frame } = captured();
    const crop = store.addCrop(caller, frame, { left: 10, top: 20, width: 50, height: 40 }, picture(50, 40));
    const inner = store.addCrop(caller, crop, { left: 5, top: 6, width: 7, height: 8 }, picture(7, 8));
    expect(inner.toScreen([1, 2])).toEqual({ x: 16, y: 28 });
    expect([inner.fromScreen({ x: 16, y: 28 }), inner.fromScreen({ x: 0, y: 0 })]).toEqual([
      [1, 2],
      [-15, -26],
    ]);
    expect(inner.data()).toMatchObject({ frame_id: "f3", parent_frame_id: "f2", width: 7, height: 8 });
    expect([inner.data().display, inner.data().captured_at, inner.inputs]).toEqual([
      frame.data().display,
      frame.data().captured_at,
      frame.inputs,
    ]);
    expect(store.get(null, caller)).toBe(inner);
    expect("parent_frame_id" in frame.data()).toBe(false);
  });
});

describe("points", () => {
  it("in frame space are the frame's pixels, with fractions, and never moved to an edge", () => {
    const { frame } = captured();
    expect(framePoint(frame, 99.9, 0, FRAME)).toEqual([99.9, 0]);
    expect(frame.toScreen(framePoint(frame, 99.9, 79.5, FRAME))).toEqual({ x: 99, y: 79 });
    for (const [x, y] of [
      [100, 0],
      [0, 80],
      [-0.1, 0],
      [0, -1],
    ] as const) {
      expect(code(() => framePoint(frame, x, y, FRAME))).toBe("out_of_bounds no");
    }
  });

  it("in norm space go to the last pixel at the far edge, and no further", () => {
    const { frame } = captured();
    expect(framePoint(frame, 1000, 1000, NORM)).toEqual([99, 79]);
    expect(framePoint(frame, 999.9, 999.9, NORM)).toEqual([99, 79]);
    expect(framePoint(frame, 500, 500, NORM)).toEqual([50, 40]);
    expect(framePoint(frame, 1, 1, { space: "norm", normScale: 1 })).toEqual([99, 79]);
    expect(code(() => framePoint(frame, 1000.1, 0, NORM))).toBe("out_of_bounds no");
    expect(code(() => framePoint(frame, 0, -0.1, NORM))).toBe("out_of_bounds no");
  });

  it("in norm space are multiplied before they are divided, so that a whole pixel stays whole", () => {
    const { frame } = captured();
    expect((290 / 1000) * 100).toBeLessThan(29);
    expect(frame.toScreen(framePoint(frame, 290, 290, NORM)).x).toBe(29);
  });

  it("take the call's space and grid, else the default ones", () => {
    expect(pointSpace(null, null, NORM)).toEqual(NORM);
    expect(pointSpace("frame", null, NORM)).toEqual(FRAME);
    expect(pointSpace(null, 5, NORM)).toEqual({ space: "norm", normScale: 5 });
    for (const wrong of [0, -1, 1_000_001, 1.5]) {
      expect(code(() => pointSpace("norm", wrong, NORM))).toBe("invalid_argument no");
    }
  });
});

describe("regions", () => {
  it("begin at the floor, end before the ceiling", () => {
    const { frame } = captured();
    expect(frameRegion(frame, [0.5, 1.9, 10.2, 10.9], FRAME)).toEqual({ left: 0, top: 1, width: 11, height: 10 });
    expect(frameRegion(frame, [0, 0, 100, 80], FRAME)).toEqual({ left: 0, top: 0, width: 100, height: 80 });
    expect(frameRegion(frame, [290, 0, 1000, 1000], NORM)).toEqual({ left: 29, top: 0, width: 71, height: 80 });
  });

  it("that are empty, or not inside, are out_of_bounds; those of another shape are invalid", () => {
    const { frame } = captured();
    for (const region of [
      [5, 5, 5, 9],
      [5, 9, 6, 5],
      [-1, 0, 5, 5],
      [0, 0, 100.1, 80],
      [0, 0, 1, 81],
    ]) {
      expect(code(() => frameRegion(frame, region, FRAME))).toBe("out_of_bounds no");
    }
    expect(code(() => frameRegion(frame, [0, 0, 1001, 5], NORM))).toBe("out_of_bounds no");
    expect(code(() => frameRegion(frame, [0, 0, 5], FRAME))).toBe("invalid_argument no");
  });
});
