import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { InputResult } from "../../protocol/computer.js";
import { act } from "../act.js";
import type { Computer } from "../computer.js";
import { chordOf } from "../keys.js";
import { ACTS, keys, screenshot, wholeNumber } from "./arguments.js";

export function keyTool(computer: Computer): ServedTool {
  const { driver } = computer;
  return defineTool(
    {
      name: "computer_key",
      description: "Press one key, or several as a chord.",
      input: z.strictObject({
        keys: keys('W3C key values, pressed in this order and released in reverse: ["Enter"], or ["Control", "s"]'),
        repeat: wholeNumber(1, driver.maxKeyRepeat, 1, "How many times to press it"),
        screenshot,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const chord = chordOf(args.keys, driver.keys);
      const { repeat } = args;
      await computer.ready.ensure(context.signal);
      return act(computer, context, {
        planned: { kind: "press", keys: chord.length, repeat },
        frame: computer.frames.latest(context.caller),
        mapped: false,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          let effect = await driver.press(chord, signal, delivery);
          for (let pressed = 1; pressed < repeat; pressed += 1) {
            delivery.sent();
            signal.throwIfAborted();
            effect = await driver.press(chord, signal, delivery);
          }
          return effect ?? undefined;
        },
        summary: () => `Pressed ${chord.map(named).join(" + ")}${repeat > 1 ? ` ${repeat} times` : ""}`,
      });
    },
  );
}

/** A key for a summary, in which a space would not be seen. */
export function named(key: string): string {
  return key === " " ? "Space" : key;
}
