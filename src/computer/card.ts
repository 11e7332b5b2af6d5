import { BUTTONS, POINT_TOOLS } from "../protocol/computer.js";
import type { JsonObject } from "../protocol/tool.js";
import type { Computer } from "./computer.js";
import { detectPlatform } from "./platform.js";

type PointTool = (typeof POINT_TOOLS)[number];

/** What the tools that take points do; how a point is written is added when they are listed. */
const POINT_TOOL_TEXTS: Readonly<Record<PointTool, string>> = {
  computer_screenshot:
    "Take a picture of the screen. It is a frame: its frame_id lets later calls point into exactly this picture, and the " +
    "answer tells its size and the display's. With region, cut a part out of a frame you have instead, at full resolution, " +
    "as a frame of its own: a way to read small text.",
  computer_click:
    "Click at a point of a frame: once, or up to as often as the computer allows, with modifiers held if given.",
  computer_drag: "Press a button at the first point of a path, move through its points, and release at the last one.",
  computer_scroll: "Turn the wheel over a point of a frame, to move the view through the content there.",
  computer_pointer_move: "Move the pointer to a point of a frame and leave it there, as for a hover.",
  computer_pointer_down: "Press a button and keep it down, after moving to a point if one is given.",
  computer_pointer_up: "Release a button, after moving to a point if one is given.",
};

/** A point tool's description, which ends with the space that points are in where a call names none. */
export function pointToolText(computer: Computer, tool: PointTool): string {
  const { space, normScale } = computer.usualSpace;
  const how =
    space === "frame"
      ? "Unless you name a space, coordinates are pixels of the frame's image."
      : `Unless you name a space, coordinates are on a grid from 0 to ${normScale} over the frame, in x and in y.`;
  return `${POINT_TOOL_TEXTS[tool]} ${how}`;
}

/** Every point tool's description by its name. */
export function pointToolTexts(computer: Computer): Map<string, string> {
  return new Map(POINT_TOOLS.map((tool) => [tool, pointToolText(computer, tool)]));
}

/** The params of computer/v1 on the card. */
export function computerParams({ driver }: Computer): JsonObject {
  return {
    buttons: orderedButtons(driver.buttons),
    max_click_count: driver.maxClickCount,
    keys: driver.keys,
    max_text_length: driver.maxTextLength,
    max_wait_ms: driver.maxWaitMs,
    max_drag_points: driver.maxDragPoints,
    max_duration_ms: driver.maxDurationMs,
    max_key_repeat: driver.maxKeyRepeat,
    max_scroll_amount: driver.maxScrollAmount,
    delivery: "foreground",
    // A session's display is an X display.
    platform: detectPlatform("x11"),
    supports: driver.supports,
  };
}

/** The params of computer-pointer/v1 on the card. */
export function pointerParams({ driver }: Computer): JsonObject {
  return { buttons: orderedButtons(driver.buttons), kinds: ["foreground"] };
}

function orderedButtons(buttons: readonly string[]): string[] {
  return BUTTONS.filter((button) => buttons.includes(button));
}
