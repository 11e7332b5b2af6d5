import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { AgentEnvError } from "../../errors.js";
import {
  type Button,
  type Effect,
  InputResult,
  PointerListResult,
  PointerPositionResult,
} from "../../protocol/computer.js";
import { act, type CallDelivery } from "../act.js";
import { pointToolText } from "../card.js";
import type { Computer } from "../computer.js";
import type { PointerGroup } from "../operations.js";
import { answer } from "../results.js";
import {
  ACTS,
  button,
  buttonOf,
  coordinate,
  frameId,
  optionalCoordinate,
  READS,
  screenshot,
  spaceArguments,
} from "./arguments.js";
import { type Target, targetOf } from "./points.js";

/** The tools of the pointer group. */
export function pointerTools(computer: Computer, pointer: PointerGroup): ServedTool[] {
  return [
    moveTool(computer, pointer),
    buttonTool(computer, pointer, "computer_pointer_down"),
    buttonTool(computer, pointer, "computer_pointer_up"),
    positionTool(computer),
    listTool(computer),
  ];
}

function moveTool(computer: Computer, pointer: PointerGroup): ServedTool {
  return defineTool(
    {
      name: "computer_pointer_move",
      description: pointToolText(computer, "computer_pointer_move"),
      input: z.strictObject({
        x: coordinate("x"),
        y: coordinate("y"),
        frame_id: frameId,
        screenshot,
        ...spaceArguments,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      await computer.ready.ensure(context.signal);
      const { frame, point, where } = (await targetOf(computer, context.caller, args, context.signal)) as Target;
      return act(computer, context, {
        planned: { kind: "pointer" },
        frame,
        mapped: true,
        screenshot: args.screenshot,
        send: (signal, delivery) => pointer.pointerMove(point, signal, delivery),
        summary: () => `Moved the pointer ${where}`,
      });
    },
  );
}

function buttonTool(
  computer: Computer,
  pointer: PointerGroup,
  name: "computer_pointer_down" | "computer_pointer_up",
): ServedTool {
  const down = name === "computer_pointer_down";
  return defineTool(
    {
      name,
      description: pointToolText(computer, name),
      input: z.strictObject({
        button,
        x: optionalCoordinate("Move there first: x in the chosen space"),
        y: optionalCoordinate("Move there first: y in the chosen space"),
        frame_id: frameId,
        screenshot,
        ...spaceArguments,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const pressed = buttonOf(computer, args.button);
      if ((args.x === null) !== (args.y === null)) {
        throw new AgentEnvError("invalid_argument", "x and y come together", {
          hint: "leave out both to act where the pointer is",
        });
      }
      await computer.ready.ensure(context.signal);
      const target = args.x === null ? undefined : await targetOf(computer, context.caller, args, context.signal);
      return act(computer, context, {
        planned: { kind: "pointer" },
        frame: target?.frame ?? computer.frames.latest(context.caller),
        mapped: target !== undefined,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          if (target !== undefined) {
            await pointer.pointerMove(target.point, signal, delivery);
            delivery.sent();
            signal.throwIfAborted();
          }
          return down ? press(pressed, signal, delivery) : release(pressed, signal, delivery);
        },
        summary: () => `${down ? "Pressed" : "Released"} ${pressed}${target === undefined ? "" : ` ${target.where}`}`,
      });
    },
  );

  async function press(which: Button, signal: AbortSignal, delivery: CallDelivery): Promise<Effect | undefined> {
    try {
      const effect = await pointer.pointerDown(which, signal, delivery);
      computer.buttons.add(delivery.caller, [which]);
      return effect ?? undefined;
    } catch (thrown) {
      if (delivery.mayHaveSent(thrown)) delivery.outlast(computer.buttons.takeBack(delivery.caller, [which]));
      throw thrown;
    }
  }

  async function release(which: Button, signal: AbortSignal, delivery: CallDelivery): Promise<Effect | undefined> {
    const effect = await pointer.pointerUp(which, signal, delivery);
    computer.buttons.remove([which]);
    return effect ?? undefined;
  }
}

function positionTool(computer: Computer): ServedTool {
  return defineTool(
    {
      name: "computer_pointer_position",
      description: "Tell where the pointer is: on the screen, and in a frame's pixels.",
      input: z.strictObject({ frame_id: frameId }),
      output: PointerPositionResult,
      annotations: READS,
    },
    async (args, context) => {
      await computer.ready.ensure(context.signal);
      const frame =
        args.frame_id === null
          ? computer.frames.latest(context.caller)
          : computer.frames.get(args.frame_id, context.caller);
      const screen = await computer.pointer(context.signal);
      const onScreen = `The pointer is at screen (${screen.x}, ${screen.y})`;
      if (frame === undefined) return answer({ summary: onScreen, screen });
      const [x, y] = frame.fromScreen(screen);
      const inside = frame.contains(x, y);
      const result: PointerPositionResult = {
        summary: `${onScreen}, which is (${x}, ${y}) ${inside ? "of" : "and so outside"} ${frame.id}`,
        screen,
        frame_id: frame.id,
        x,
        y,
        inside_frame: inside,
      };
      return answer(result);
    },
  );
}

function listTool(computer: Computer): ServedTool {
  return defineTool(
    {
      name: "computer_pointer_list",
      description: "List the pointers that you can use, and which one is yours unless you name another.",
      input: z.strictObject({}),
      output: PointerListResult,
      annotations: READS,
    },
    async (_args, context) => {
      await computer.ready.ensure(context.signal);
      const result: PointerListResult = {
        summary: "There is one pointer, default, and everyone uses it",
        pointers: [{ id: "default", kind: "foreground", label: "The screen's pointer", default: true }],
      };
      return answer(result);
    },
  );
}
