import type { Caller } from "../../environment/caller.js";
import { AgentEnvError } from "../../errors.js";
import type { ScreenPoint, Space } from "../../protocol/computer.js";
import type { Computer } from "../computer.js";
import { checkCurrent, type Frame } from "../frames.js";
import { framePoint, type PointSpace, pointSpace } from "../spaces.js";

interface SpaceArguments {
  readonly space: Space | null;
  readonly norm_scale: number | null;
}

interface PointArguments extends SpaceArguments {
  readonly x: number | null;
  readonly y: number | null;
  readonly frame_id: string | null;
}

/** A point of a frame, mapped to the screen. */
export interface Target {
  readonly frame: Frame;
  readonly point: ScreenPoint;
  /** Where it is, for a summary. */
  readonly where: string;
}

export function spaceOf(computer: Computer, { space, norm_scale }: SpaceArguments): PointSpace {
  return pointSpace(space, norm_scale, computer.usualSpace);
}

/**
 * The frame that a call's points are in. Throws `stale_frame`. While other input keeps the queue, the display is asked
 * here too, so that a call isn't left waiting for a refusal.
 */
export async function frameOf(
  computer: Computer,
  caller: Caller,
  frameId: string | null,
  signal: AbortSignal,
): Promise<Frame> {
  const frame = computer.frames.get(frameId, caller);
  if (computer.queue.busy) checkCurrent(frame, await computer.display(signal));
  return frame;
}

/**
 * The point that a call names; undefined where it names none, which means the pointer's. Throws `invalid_argument` for half a
 * point, or for none where there is no pointer to ask.
 */
export async function targetOf(
  computer: Computer,
  caller: Caller,
  args: PointArguments,
  signal: AbortSignal,
): Promise<Target | undefined> {
  const { x, y } = args;
  if (x === null && y === null && args.frame_id === null && computer.groups.pointer !== undefined) return undefined;
  if (x === null || y === null) {
    throw new AgentEnvError("invalid_argument", "x and y are needed", {
      ...(computer.groups.pointer === undefined
        ? {}
        : { hint: "without x, y and frame_id it acts where the pointer is" }),
    });
  }
  const frame = await frameOf(computer, caller, args.frame_id, signal);
  const space = spaceOf(computer, args);
  const point = frame.toScreen(framePoint(frame, x, y, space));
  const grid = space.space === "norm" ? ` on a grid of ${space.normScale}` : "";
  return { frame, point, where: `at (${x}, ${y})${grid} of ${frame.id}` };
}

/** Where the pointer is, for a summary. */
export function atPointer({ x, y }: ScreenPoint): string {
  return `at the pointer, screen (${x}, ${y})`;
}
