import type { ServedExtension } from "../../environment/extension.js";
import { COMPUTER_URN, POINTER_URN } from "../../protocol/computer.js";
import { computerParams, pointerParams } from "../card.js";
import type { Computer } from "../computer.js";

/** computer/v1: declared on the card, with no methods. */
export function computerExtension(computer: Computer): ServedExtension {
  return {
    uri: COMPUTER_URN,
    description: "A computer's screen, pointer and keyboard, as seven computer_* tools.",
    methods: [],
    params: () => computerParams(computer),
  };
}

/** computer-pointer/v1: declared on the card, with no methods. */
export function pointerExtension(computer: Computer): ServedExtension {
  return {
    uri: POINTER_URN,
    description: "The pointer by itself, as computer_pointer_* tools; clicks and scrolls may leave out their point.",
    methods: [],
    params: () => pointerParams(computer),
  };
}
