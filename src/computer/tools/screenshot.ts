import { z } from "zod";
import type { ToolContext } from "../../environment/context.js";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { AgentEnvError } from "../../errors.js";
import { ScreenshotResult as Result, type ScreenshotResult } from "../../protocol/computer.js";
import { pointToolText } from "../card.js";
import type { Computer } from "../computer.js";
import { checkCurrent, displayText, type Frame } from "../frames.js";
import { answer, imageOf } from "../results.js";
import { frameRegion } from "../spaces.js";
import { optionalWholeNumber, READS, spaceArguments } from "./arguments.js";
import { spaceOf } from "./points.js";

const Input = z.strictObject({
  region: z
    .array(z.number())
    .nullable()
    .default(null)
    .describe("[x0, y0, x1, y1] inside a frame, the end exclusive: answer with that part of it"),
  frame_id: z
    .string()
    .nullable()
    .default(null)
    .describe("With region: the frame to cut from; your latest one if left out"),
  format: z.enum(["png", "jpeg"]).default("png").describe("How the image is encoded"),
  quality: optionalWholeNumber(1, 95, "With format jpeg: its quality"),
  ...spaceArguments,
});
type Input = z.infer<typeof Input>;

export function screenshotTool(computer: Computer): ServedTool {
  return defineTool(
    {
      name: "computer_screenshot",
      description: pointToolText(computer, "computer_screenshot"),
      input: Input,
      output: Result,
      annotations: READS,
    },
    async (args, context) => {
      if (args.quality !== null && args.format !== "jpeg") {
        throw new AgentEnvError("invalid_argument", "quality is for format jpeg");
      }
      if (args.region === null && args.frame_id !== null) {
        throw new AgentEnvError(
          "invalid_argument",
          "frame_id is the frame that region is cut from, and there is no region",
        );
      }
      await computer.ready.ensure(context.signal);
      const { frame, summary } =
        args.region === null ? await captured(computer, context) : await cropped(computer, context, args, args.region);
      const result: ScreenshotResult = { summary, ...frame.data() };
      return answer(result, await imageOf(frame, args.format, args.quality ?? undefined));
    },
  );
}

interface Shot {
  readonly frame: Frame;
  readonly summary: string;
}

async function captured(computer: Computer, context: ToolContext): Promise<Shot> {
  const frame = await computer.capture(context.caller, context.signal);
  return {
    frame,
    summary: `Captured ${frame.id}, ${frame.width}x${frame.height} pixels of a display of ${displayText(frame.display)}`,
  };
}

async function cropped(
  computer: Computer,
  context: ToolContext,
  args: Input,
  region: readonly number[],
): Promise<Shot> {
  const parent = computer.frames.get(args.frame_id, context.caller);
  checkCurrent(parent, await computer.display(context.signal));
  const box = frameRegion(parent, region, spaceOf(computer, args));
  const picture = await computer.read("the crop", context.signal, () => parent.picture.crop(box));
  const frame = computer.frames.addCrop(context.caller, parent, box, picture);
  return {
    frame,
    summary: `Cut ${frame.id} out of ${parent.id}: ${box.width}x${box.height} pixels from (${box.left}, ${box.top})`,
  };
}
