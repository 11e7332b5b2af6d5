import type { Caller } from "../environment/caller.js";
import { AgentEnvError } from "../errors.js";
import type { Display, FrameData, ScreenPoint } from "../protocol/computer.js";
import type { Picture } from "./images.js";
import type { InputSnapshot } from "./input-queue.js";
import type { Box } from "./spaces.js";

/** How many frames are kept, whoever took them. */
const KEPT_FRAMES = 64;

/** What a frame shows and where it lies in the capture that it was cut from. */
interface FrameParts {
  readonly picture: Picture;
  readonly display: Display;
  /** Where this frame's pixels begin in the root capture. */
  readonly origin: readonly [number, number];
  /** The size of the root capture, which shows the whole display. */
  readonly root: readonly [number, number];
  readonly parentId: string | undefined;
  readonly capturedAt: Date;
  /** The inputs delivered before the capture began. */
  readonly inputs: InputSnapshot;
}

/** A capture of the screen, or a crop of one, that later calls point into. */
export class Frame {
  constructor(
    readonly id: string,
    private readonly parts: FrameParts,
  ) {}

  get picture(): Picture {
    return this.parts.picture;
  }

  get display(): Display {
    return this.parts.display;
  }

  get inputs(): InputSnapshot {
    return this.parts.inputs;
  }

  get width(): number {
    return this.parts.picture.width;
  }

  get height(): number {
    return this.parts.picture.height;
  }

  contains(x: number, y: number): boolean {
    return x >= 0 && x < this.width && y >= 0 && y < this.height;
  }

  /** The screen pixel under a point of this frame. */
  toScreen([x, y]: readonly [number, number]): ScreenPoint {
    const { origin, root, display } = this.parts;
    return {
      x: Math.floor(((origin[0] + x) * display.width) / root[0]),
      y: Math.floor(((origin[1] + y) * display.height) / root[1]),
    };
  }

  /** The frame's pixel over a point of the screen, which may lie outside the frame. */
  fromScreen({ x, y }: ScreenPoint): [number, number] {
    const { origin, root, display } = this.parts;
    return [
      Math.floor((x * root[0]) / display.width - origin[0]),
      Math.floor((y * root[1]) / display.height - origin[1]),
    ];
  }

  /** The parts of a crop of this frame: other pixels, the same screen at the same moment. */
  cropParts(box: Box, picture: Picture): FrameParts {
    const [left, top] = this.parts.origin;
    return { ...this.parts, picture, origin: [left + box.left, top + box.top], parentId: this.id };
  }

  /** The frame as results carry it. */
  data(): FrameData {
    const { display, parentId, capturedAt } = this.parts;
    return {
      frame_id: this.id,
      width: this.width,
      height: this.height,
      display: { width: display.width, height: display.height, scale: display.scale },
      ...(parentId === undefined ? {} : { parent_frame_id: parentId }),
      captured_at: capturedAt.toISOString(),
    };
  }
}

/** The frames that calls can point into, `f<n>`, and each caller's latest, which is the one meant where none is named. */
export class FrameStore {
  readonly #frames = new Map<string, Frame>();
  readonly #latest = new WeakMap<Caller, string>();
  #count = 0;
  #newest: Frame | undefined;

  constructor(private readonly kept = KEPT_FRAMES) {}

  /** Keeps a capture of the whole display as the caller's latest frame; the oldest frame goes. */
  addCapture(
    caller: Caller,
    capture: { picture: Picture; display: Display; capturedAt: Date; inputs: InputSnapshot },
  ): Frame {
    const root = [capture.picture.width, capture.picture.height] as const;
    return this.#add(caller, { ...capture, origin: [0, 0], root, parentId: undefined });
  }

  /** Keeps a part of a frame as the caller's latest frame. */
  addCrop(caller: Caller, parent: Frame, box: Box, picture: Picture): Frame {
    return this.#add(caller, parent.cropParts(box, picture));
  }

  #add(caller: Caller, parts: FrameParts): Frame {
    this.#count += 1;
    const frame = new Frame(`f${this.#count}`, parts);
    this.#frames.set(frame.id, frame);
    this.#latest.set(caller, frame.id);
    if (this.#newest?.picture !== parts.picture) this.#newest?.picture.forgetEncoded();
    this.#newest = frame;
    const [oldest] = this.#frames.keys();
    if (this.#frames.size > this.kept && oldest !== undefined) this.#frames.delete(oldest);
    return frame;
  }

  /** The named frame, whoever took it, else the caller's latest. Throws `stale_frame` where it isn't there. */
  get(frameId: string | null, caller: Caller): Frame {
    const id = frameId ?? this.#latest.get(caller);
    if (id === undefined) {
      throw new AgentEnvError("stale_frame", "you have taken no screenshot yet", { hint: "call computer_screenshot" });
    }
    const frame = this.#frames.get(id);
    if (frame === undefined) {
      throw new AgentEnvError("stale_frame", `there is no frame ${id}, or no longer: the last ${this.kept} are kept`, {
        hint: "call computer_screenshot and point into its frame",
      });
    }
    return frame;
  }

  /** The caller's latest frame, where it is still kept. */
  latest(caller: Caller): Frame | undefined {
    return this.#frames.get(this.#latest.get(caller) ?? "");
  }

  clear(): void {
    this.#frames.clear();
    this.#newest = undefined;
  }
}

/** Throws `stale_frame` where the display has another size or scale than when the frame was captured. */
export function checkCurrent(frame: Frame, now: Display): void {
  const then = frame.display;
  if (then.width === now.width && then.height === now.height && then.scale === now.scale) return;
  throw new AgentEnvError(
    "stale_frame",
    `${frame.id} shows a display of ${displayText(then)}, which is ${displayText(now)} now`,
    { hint: "call computer_screenshot and point into its frame" },
  );
}

/** `1280x800`, with the scale where it isn't 1. */
export function displayText({ width, height, scale }: Display): string {
  return `${width}x${height}${scale === 1 ? "" : ` at scale ${scale}`}`;
}
