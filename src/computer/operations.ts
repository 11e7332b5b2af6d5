import { SetupError } from "../errors.js";
import type { Button, Display, Effect, ScreenPoint } from "../protocol/computer.js";

/**
 * What a driver captured: the whole display at native resolution. The same object answered again says that nothing has
 * changed on the screen since, and the picture isn't made anew.
 */
export type Capture = (
  | {
      readonly png: Buffer;
      /** The same in base64, as ASCII, where the driver has it: it isn't encoded again. */
      readonly base64?: Buffer;
    }
  | {
      /** Rows from the top, without padding between them. Copied at once: the driver may use the buffer for the next capture. */
      readonly raw: Buffer;
      readonly layout: "RGB" | "RGBX" | "BGRX";
      readonly width: number;
      readonly height: number;
    }
) & {
  /** The display as it was when it was captured, where the driver learns it with the picture: it is not asked again then. */
  readonly display?: Display;
};

/** Keys that callers hold down through computer_keyboard_down, as an input operation finds them. */
export interface HeldKeys {
  /** Those of the caller whose input this is; they apply to it. */
  readonly own: readonly string[];
  /** Those that other callers hold and this one doesn't; they should not apply to it. */
  readonly others: readonly string[];
}

/** What an input operation tells about its progress. */
export interface Delivery {
  /**
   * Says that from now on something may have reached the computer. An AgentEnvError thrown before it is a refusal with that
   * error's own `applied`; one thrown after it is answered with `applied: unknown`. Without it, an AgentEnvError is taken at
   * its word. Anything else that is thrown is `delivery_failed`, applied unknown, either way.
   */
  sent(): void;
  /**
   * Says that the X server has passed on all that was sent: no button is down any more, so that no window manager holds a click
   * back. Without it the next input looks for that first.
   */
  passedOn?(): void;
  /** Keeps other input waiting until `work` has settled, also when this operation returns or fails before. */
  outlast(work: Promise<unknown>): void;
  readonly held: HeldKeys;
}

/** What an input operation answers: what it could confirm, or nothing. */
export type Delivered = Promise<Effect | undefined> | Promise<void>;

/** Optional, whole or not at all: the pointer by itself. Serves `computer_pointer_*`, and click and scroll at the pointer. */
export interface PointerGroup {
  pointerMove(point: ScreenPoint, signal: AbortSignal, delivery: Delivery): Delivered;
  pointerDown(button: Button, signal: AbortSignal, delivery: Delivery): Delivered;
  pointerUp(button: Button, signal: AbortSignal, delivery: Delivery): Delivered;
  pointerPosition(signal: AbortSignal): Promise<ScreenPoint>;
}

/** Optional, whole or not at all: keys that stay down. Serves `computer_keyboard_*` and `computer-keyboard`. */
export interface KeyboardGroup {
  /** Presses the keys in order. What a failed call pressed is up again when it throws. */
  keyDown(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Delivered;
  /** Releases the keys in order. */
  keyUp(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Delivered;
}

/** Optional: `computer-display`'s `set`, to one of the driver's `displayModes`. */
export interface SetsDisplay {
  setDisplay(display: Display, signal: AbortSignal): Promise<Display>;
}

/** An input that is about to be sent, for a driver to say how long it takes. */
export type PlannedInput =
  | { readonly kind: "click"; readonly count: number }
  | { readonly kind: "drag"; readonly durationMs: number; readonly points: number }
  | { readonly kind: "scroll"; readonly amount: number }
  | { readonly kind: "type"; readonly characters: number }
  | { readonly kind: "press"; readonly keys: number; readonly repeat: number }
  | { readonly kind: "hold"; readonly holdMs: number }
  | { readonly kind: "pointer" };

/** What a driver can do beside the seven operations. */
export interface Groups {
  readonly pointer: PointerGroup | undefined;
  readonly keyboard: KeyboardGroup | undefined;
  readonly setsDisplay: SetsDisplay | undefined;
}

const MEMBERS = {
  pointer: ["pointerMove", "pointerDown", "pointerUp", "pointerPosition"],
  keyboard: ["keyDown", "keyUp"],
  setsDisplay: ["setDisplay"],
} as const satisfies Record<keyof Groups, readonly string[]>;

/** Reads off a driver which groups it has. Throws a SetupError for half a group. */
export function groupsOf(driver: object): Groups {
  const has = (group: keyof Groups): boolean => {
    const members: readonly string[] = MEMBERS[group];
    const lacking = members.filter((name) => typeof (driver as Record<string, unknown>)[name] !== "function");
    if (lacking.length > 0 && lacking.length < members.length) {
      throw new SetupError(
        `${driver.constructor.name} has half of the ${group} group: ${lacking.join(", ")} is missing`,
        {
          hint: `implement all of ${members.join(", ")}, or none`,
        },
      );
    }
    return lacking.length === 0;
  };
  return {
    pointer: has("pointer") ? (driver as unknown as PointerGroup) : undefined,
    keyboard: has("keyboard") ? (driver as unknown as KeyboardGroup) : undefined,
    setsDisplay: has("setsDisplay") ? (driver as unknown as SetsDisplay) : undefined,
  };
}
