import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { InputResult } from "../../protocol/computer.js";
import { act } from "../act.js";
import { pointToolText } from "../card.js";
import type { Computer } from "../computer.js";
import {
  ACTS,
  button,
  buttonOf,
  modifiers,
  modifiersOf,
  pointArguments,
  screenshot,
  spaceArguments,
  wholeNumber,
} from "./arguments.js";
import { atPointer, targetOf } from "./points.js";

export function clickTool(computer: Computer): ServedTool {
  const { driver } = computer;
  const most = driver.maxClickCount;
  return defineTool(
    {
      name: "computer_click",
      description: pointToolText(computer, "computer_click"),
      input: z.strictObject({
        ...pointArguments(computer),
        button,
        count: wholeNumber(1, most, 1, `How many clicks, up to ${most}: 2 is a double click`),
        modifiers,
        screenshot,
        ...spaceArguments,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const pressed = buttonOf(computer, args.button);
      const held = modifiersOf(computer, args.modifiers);
      await computer.ready.ensure(context.signal);
      const target = await targetOf(computer, context.caller, args, context.signal);
      let where = target?.where;
      return act(computer, context, {
        planned: { kind: "click", count: args.count },
        frame: target?.frame ?? computer.frames.latest(context.caller),
        mapped: target !== undefined,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          const point = target?.point ?? (await computer.pointer(signal));
          where ??= atPointer(point);
          return (await driver.click(point, pressed, args.count, held, signal, delivery)) ?? undefined;
        },
        summary: () => `Clicked ${pressed}${args.count > 1 ? ` ${args.count} times` : ""} ${where}`,
      });
    },
  );
}
