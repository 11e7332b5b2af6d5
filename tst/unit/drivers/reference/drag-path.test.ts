import { describe, expect, it } from "vitest";
import { dragSteps } from "../../../../drivers/reference/drag-path.js";

describe("the steps of a drag", () => {
  it("go through every point of the path, the last one at the end of the time", () => {
    const path = [
      { x: 0, y: 0 },
      { x: 100, y: 0 },
      { x: 100, y: 7 },
      { x: 100, y: 7 },
      { x: 0, y: 300 },
    ];
    const steps = dragSteps(path, 400);
    for (const point of path.slice(1)) expect(steps).toContainEqual(expect.objectContaining(point));
    expect(steps.at(-1)).toMatchObject({ x: 0, y: 300 });
    expect(steps.at(-1)?.atMs).toBeCloseTo(400);
  });

  it("are at most 20 pixels apart, at least two a stretch, and never go back in time", () => {
    const steps = dragSteps(
      [
        { x: 3, y: 3 },
        { x: 5, y: 3 },
        { x: 900, y: 700 },
      ],
      0,
    );
    expect(steps.length).toBeGreaterThanOrEqual(2 + Math.ceil(Math.hypot(895, 697) / 20));
    for (const [index, step] of steps.entries()) {
      const before = steps[index - 1] ?? { x: 3, y: 3, atMs: 0 };
      expect(Math.hypot(step.x - before.x, step.y - before.y)).toBeLessThan(22);
      expect(step.atMs).toBeGreaterThanOrEqual(before.atMs);
    }
  });

  it("of a path that stays where it is take the time all the same", () => {
    const steps = dragSteps(
      [
        { x: 8, y: 8 },
        { x: 8, y: 8 },
      ],
      100,
    );
    expect(steps.at(-1)).toEqual({ x: 8, y: 8, atMs: 100 });
  });
});
