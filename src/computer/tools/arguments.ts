import { z } from "zod";
import { AgentEnvError } from "../../errors.js";
import { type Button, Space } from "../../protocol/computer.js";
import type { ToolAnnotations } from "../../protocol/tool.js";
import type { Computer } from "../computer.js";
import { chordOf } from "../keys.js";

// An argument that may be left out may also be null, as clients of the published protocol send it. Unknown arguments are
// ignored, as it ignores them.

export const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
export const ACTS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};

function optional<S extends z.ZodType>(schema: S, description: string) {
  return schema.nullable().default(null).describe(description);
}

export function wholeNumber(low: number, high: number, usual: number, description: string) {
  return z.int().min(low).max(high).default(usual).describe(description);
}

export function optionalWholeNumber(low: number, high: number, description: string) {
  return optional(z.int().min(low).max(high), description);
}

export const frameId = optional(z.string(), "The frame that the coordinates mean; your latest one if left out");
export const button = optional(z.string(), "The button, left if left out; the card says which ones there are");
export const modifiers = optional(z.array(z.string()), 'W3C keys held down meanwhile, such as ["Shift"]');
export const screenshot = z.boolean().default(false).describe("Whether to answer with a fresh frame afterwards");
export const keys = (description: string) => z.array(z.string()).describe(description);

/** The arguments that say how the coordinates are written. */
export const spaceArguments = {
  space: optional(Space, "frame: pixels of the frame's image; norm: 0 to norm_scale over the frame"),
  norm_scale: optional(z.int(), "For space norm: the number that stands for the far edges"),
};

export const coordinate = (name: string) => z.number().describe(`${name} in the chosen space`);
export const optionalCoordinate = (description: string) => optional(z.number(), description);
export const optionalKeys = (description: string) => optional(z.array(z.string()), description);

/** The arguments of a point that may be the pointer's, where the computer has a pointer to ask. */
export function pointArguments({ groups }: Computer) {
  const otherwise = groups.pointer === undefined ? "" : "; leave out x and y to act where the pointer is";
  return {
    x: optionalCoordinate(`x in the chosen space${otherwise}`),
    y: optionalCoordinate(`y in the chosen space${otherwise}`),
    frame_id: frameId,
  };
}

/** The button that a call names; the left one where it names none. Throws `unsupported`. */
export function buttonOf({ driver }: Computer, name: string | null): Button {
  const wanted = name === null || name === "" ? "left" : name;
  const found = driver.buttons.find((each) => each === wanted);
  if (found !== undefined) return found;
  throw new AgentEnvError("unsupported", `this computer has no ${wanted} button`, {
    hint: `it has ${driver.buttons.join(", ")}`,
  });
}

/** The modifiers that a call names. Throws `invalid_argument` and `unsupported`. */
export function modifiersOf({ driver }: Computer, names: readonly string[] | null): string[] {
  return names === null || names.length === 0 ? [] : chordOf(names, driver.keys);
}
