import type { Mounted } from "../../environment/environment.js";
import type { ServedExtension } from "../../environment/extension.js";
import type { Computer } from "../computer.js";
import type { Commands } from "../exec.js";
import { computerExtension, pointerExtension } from "./computer.js";
import { dataExtensions } from "./data.js";
import { displayExtension } from "./display.js";
import { execExtension } from "./exec.js";
import { keyboardExtension } from "./keyboard.js";
import { readyExtension } from "./ready.js";
import { spacesExtension } from "./spaces.js";

/** The extensions of a computer; a group's only where the driver has the group. */
export function computerExtensions(
  computer: Computer,
  commands: Commands,
  application: () => Mounted | undefined,
): ServedExtension[] {
  const { pointer, keyboard } = computer.groups;
  return [
    computerExtension(computer),
    readyExtension(computer),
    displayExtension(computer),
    spacesExtension(computer, application),
    ...(pointer === undefined ? [] : [pointerExtension(computer)]),
    ...(keyboard === undefined ? [] : [keyboardExtension(computer)]),
    execExtension(computer, commands),
    ...dataExtensions(),
  ];
}
