import type { ServedTool } from "../../environment/served-tool.js";
import type { Computer } from "../computer.js";
import { clickTool } from "./click.js";
import { dragTool } from "./drag.js";
import { keyTool } from "./key.js";
import { keyboardTools } from "./keyboard.js";
import { pointerTools } from "./pointer.js";
import { screenshotTool } from "./screenshot.js";
import { scrollTool } from "./scroll.js";
import { typeTool } from "./type.js";
import { waitTool } from "./wait.js";

/** The tools of computer/v1: the seven that every computer has, and those of the groups that the driver has. */
export function computerTools(computer: Computer): ServedTool[] {
  const { pointer, keyboard } = computer.groups;
  return [
    screenshotTool(computer),
    clickTool(computer),
    dragTool(computer),
    scrollTool(computer),
    typeTool(computer),
    keyTool(computer),
    waitTool(computer),
    ...(pointer === undefined ? [] : pointerTools(computer, pointer)),
    ...(keyboard === undefined ? [] : keyboardTools(computer, keyboard)),
  ];
}
