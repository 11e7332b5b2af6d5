import type { ScreenPoint } from "../../src/protocol/computer.js";

/** How far apart the pointer's steps are at most, in pixels, and in milliseconds where there is time. */
const STEP_PX = 20;
const STEP_MS = 10;

/** One step of a drag: where the pointer goes, and when, from the drag's start. */
export interface DragStep extends ScreenPoint {
  readonly atMs: number;
}

/**
 * The steps of a drag after its first point: through every point of the path, at one speed, and through points between them as
 * a hand would, two to a stretch at least.
 */
export function dragSteps(path: readonly ScreenPoint[], durationMs: number): DragStep[] {
  const stretches = path.slice(1).map((to, index) => ({ from: path[index] as ScreenPoint, to }));
  const lengths = stretches.map(({ from, to }) => Math.hypot(to.x - from.x, to.y - from.y));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const steps: DragStep[] = [];
  let begunMs = 0;
  for (const [index, { from, to }] of stretches.entries()) {
    const length = lengths[index] ?? 0;
    const ms = total === 0 ? durationMs / stretches.length : (durationMs * length) / total;
    const count = Math.max(2, Math.ceil(length / STEP_PX), Math.floor(ms / STEP_MS));
    for (let step = 1; step <= count; step += 1) {
      const share = step / count;
      steps.push({
        x: Math.round(from.x + (to.x - from.x) * share),
        y: Math.round(from.y + (to.y - from.y) * share),
        atMs: begunMs + ms * share,
      });
    }
    begunMs += ms;
  }
  return steps;
}
