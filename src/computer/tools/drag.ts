import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { InputResult } from "../../protocol/computer.js";
import { act } from "../act.js";
import { pointToolText } from "../card.js";
import type { Computer } from "../computer.js";
import { framePoint } from "../spaces.js";
import {
  ACTS,
  button,
  buttonOf,
  frameId,
  modifiers,
  modifiersOf,
  optionalWholeNumber,
  screenshot,
  spaceArguments,
} from "./arguments.js";
import { frameOf, spaceOf } from "./points.js";

export function dragTool(computer: Computer): ServedTool {
  const { driver } = computer;
  const most = driver.maxDragPoints;
  return defineTool(
    {
      name: "computer_drag",
      description: pointToolText(computer, "computer_drag"),
      input: z.strictObject({
        path: z
          .array(z.array(z.number()).length(2))
          .min(2)
          .max(most)
          .describe(`The points [[x, y], ...], from 2 to ${most}, the start first`),
        frame_id: frameId,
        button,
        duration_ms: optionalWholeNumber(0, driver.maxDurationMs, "How long the way takes, in milliseconds"),
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
      const frame = await frameOf(computer, context.caller, args.frame_id, context.signal);
      const space = spaceOf(computer, args);
      const path = args.path.map(([x, y]) => frame.toScreen(framePoint(frame, x as number, y as number, space)));
      const durationMs = args.duration_ms ?? computer.settings.drag_duration_ms;
      return act(computer, context, {
        planned: { kind: "drag", durationMs, points: path.length },
        frame,
        mapped: true,
        screenshot: args.screenshot,
        send: (signal, delivery) => driver.drag(path, pressed, durationMs, held, signal, delivery),
        summary: () => `Dragged ${pressed} along ${path.length} points of ${frame.id} in ${durationMs} ms`,
      });
    },
  );
}
