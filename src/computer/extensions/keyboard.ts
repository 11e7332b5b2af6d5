import { extensionMethod, type ServedExtension } from "../../environment/extension.js";
import { AgentEnvError } from "../../errors.js";
import {
  KEYBOARD_RANGES,
  KEYBOARD_URN,
  type KeyboardAnswer,
  NoParams,
  SetKeyboardRequest,
} from "../../protocol/computer.js";
import type { Computer } from "../computer.js";

const NUMBERS = ["tap_hold_ms", "type_delay_ms", "max_hold_ms"] as const;

/** computer-keyboard/v1: how keys are pressed; only with the keyboard group. */
export function keyboardExtension(computer: Computer): ServedExtension {
  return {
    uri: KEYBOARD_URN,
    description:
      "Tells and changes how long keys are tapped and held, the pause between typed characters, and the layout.",
    params: () => ({ ...KEYBOARD_RANGES, layouts: computer.driver.layouts }),
    methods: [
      extensionMethod({
        name: "get",
        op: "get",
        method: "GET",
        request: NoParams,
        handle: () => current(computer),
      }),
      extensionMethod({
        name: "set",
        op: "set",
        method: "POST",
        request: SetKeyboardRequest,
        handle: (params) => {
          const changed = { ...computer.settings };
          for (const name of NUMBERS) {
            const value = params[name];
            if (value === undefined || value === null) continue;
            const { min, max } = KEYBOARD_RANGES[name];
            if (value < min || value > max) {
              throw new AgentEnvError("invalid_argument", `${name} is from ${min} to ${max} ms, not ${value}`);
            }
            changed[name] = value;
          }
          const { layout } = params;
          if (layout !== undefined && layout !== null) {
            if (!computer.driver.layouts.includes(layout)) {
              throw new AgentEnvError("unsupported", `this computer has no keyboard layout ${JSON.stringify(layout)}`, {
                hint: `it has ${computer.driver.layouts.join(", ")}`,
              });
            }
            changed.layout = layout;
          }
          computer.settings = changed;
          return current(computer);
        },
      }),
    ],
  };
}

function current({ settings }: Computer): KeyboardAnswer {
  const { tap_hold_ms, type_delay_ms, layout, max_hold_ms } = settings;
  return { tap_hold_ms, type_delay_ms, layout, max_hold_ms };
}
