import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { InputResult, ScrollDirection } from "../../protocol/computer.js";
import { act } from "../act.js";
import { pointToolText } from "../card.js";
import type { Computer } from "../computer.js";
import { ACTS, modifiers, modifiersOf, pointArguments, screenshot, spaceArguments, wholeNumber } from "./arguments.js";
import { atPointer, targetOf } from "./points.js";

export function scrollTool(computer: Computer): ServedTool {
  const { driver } = computer;
  return defineTool(
    {
      name: "computer_scroll",
      description: pointToolText(computer, "computer_scroll"),
      input: z.strictObject({
        direction: ScrollDirection.describe("Where the view goes: down shows what lies further down"),
        ...pointArguments(computer),
        amount: wholeNumber(1, driver.maxScrollAmount, 3, "How many steps of the wheel"),
        modifiers,
        screenshot,
        ...spaceArguments,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const { direction, amount } = args;
      const held = modifiersOf(computer, args.modifiers);
      await computer.ready.ensure(context.signal);
      const target = await targetOf(computer, context.caller, args, context.signal);
      let where = target?.where;
      return act(computer, context, {
        planned: { kind: "scroll", amount },
        frame: target?.frame ?? computer.frames.latest(context.caller),
        mapped: target !== undefined,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          const point = target?.point ?? (await computer.pointer(signal));
          where ??= atPointer(point);
          return (await driver.scroll(point, direction, amount, held, signal, delivery)) ?? undefined;
        },
        summary: () => `Scrolled ${direction} by ${amount} ${where}`,
      });
    },
  );
}
