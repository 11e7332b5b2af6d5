import { AgentEnvError } from "../errors.js";
import { NORM_SCALE, type Space } from "../protocol/computer.js";
import type { Frame } from "./frames.js";

/** How a call writes its points: in the frame's pixels, or from 0 to `normScale` over the frame. */
export interface PointSpace {
  readonly space: Space;
  readonly normScale: number;
}

/** A box of whole pixels of a frame; the end is exclusive. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The space of a call: what it names, else the default. Throws `invalid_argument`. */
export function pointSpace(space: Space | null, normScale: number | null, usual: PointSpace): PointSpace {
  const scale = normScale ?? usual.normScale;
  if (!Number.isInteger(scale) || scale < NORM_SCALE.min || scale > NORM_SCALE.max) {
    throw new AgentEnvError(
      "invalid_argument",
      `norm_scale is a whole number from ${NORM_SCALE.min} to ${NORM_SCALE.max}, not ${scale}`,
    );
  }
  return { space: space ?? usual.space, normScale: scale };
}

/**
 * A point in the frame's pixels, fractions kept. The norm grid's far edge is the last pixel. A point outside the frame is
 * `out_of_bounds`, never moved to its edge.
 */
export function framePoint(frame: Frame, x: number, y: number, { space, normScale }: PointSpace): [number, number] {
  if (space === "frame") {
    if (frame.contains(x, y)) return [x, y];
    throw new AgentEnvError("out_of_bounds", `(${x}, ${y}) is outside ${frame.id}, which is ${sizeOf(frame)}`, {
      hint: `x is below ${frame.width} and y below ${frame.height}, both from 0`,
    });
  }
  if (!(x >= 0 && x <= normScale && y >= 0 && y <= normScale)) {
    throw new AgentEnvError(
      "out_of_bounds",
      `(${x}, ${y}) is outside ${frame.id}, whose norm grid is 0 to ${normScale}`,
    );
  }
  // The size comes first and the scale second, or a product that should be whole falls just below it.
  return [
    Math.min((x * frame.width) / normScale, frame.width - 1),
    Math.min((y * frame.height) / normScale, frame.height - 1),
  ];
}

/** A region as a box of the frame's pixels. Throws `invalid_argument`, and `out_of_bounds` for an empty box or one not inside. */
export function frameRegion(frame: Frame, region: readonly number[], { space, normScale }: PointSpace): Box {
  const [x0, y0, x1, y1] = region;
  if (region.length !== 4 || x0 === undefined || y0 === undefined || x1 === undefined || y1 === undefined) {
    throw new AgentEnvError("invalid_argument", `region has the four numbers [x0, y0, x1, y1], not ${region.length}`);
  }
  const outside = () =>
    new AgentEnvError(
      "out_of_bounds",
      `[${region.join(", ")}] is no box with an area inside ${frame.id}, which is ${sizeOf(frame)}` +
        (space === "norm" ? ` on a norm grid of ${normScale}` : ""),
      { hint: "region is [x0, y0, x1, y1] with x0 < x1 and y0 < y1, the end exclusive" },
    );
  if (space === "norm" && !region.every((value) => value >= 0 && value <= normScale)) throw outside();
  const across = (value: number) => (space === "norm" ? (value * frame.width) / normScale : value);
  const down = (value: number) => (space === "norm" ? (value * frame.height) / normScale : value);
  const left = Math.floor(across(x0));
  const top = Math.floor(down(y0));
  const right = Math.ceil(across(x1));
  const bottom = Math.ceil(down(y1));
  const inside =
    0 <= left && left < right && right <= frame.width && 0 <= top && top < bottom && bottom <= frame.height;
  if (!inside) throw outside();
  return { left, top, width: right - left, height: bottom - top };
}

function sizeOf(frame: Frame): string {
  return `${frame.width}x${frame.height} pixels`;
}
