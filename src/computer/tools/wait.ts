import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { WaitResult as Result, type WaitResult } from "../../protocol/computer.js";
import type { Computer } from "../computer.js";
import { cancelled } from "../deadline.js";
import { answer, imageOf } from "../results.js";
import { READS, screenshot, wholeNumber } from "./arguments.js";

export function waitTool(computer: Computer): ServedTool {
  const most = computer.driver.maxWaitMs;
  return defineTool(
    {
      name: "computer_wait",
      description: "Do nothing for a while, as for a program that needs time, and then look if asked to.",
      input: z.strictObject({
        ms: wholeNumber(0, most, 1_000, `How long, in milliseconds, up to ${most}`),
        screenshot,
      }),
      output: Result,
      annotations: READS,
    },
    async ({ ms, screenshot: look }, context) => {
      if (!computer.ready.passed) await computer.ready.ensure(context.signal);
      if (ms > 0) {
        await sleep(ms, undefined, { signal: context.signal }).catch(() => {
          throw cancelled();
        });
      }
      const result: WaitResult = { summary: `Waited ${ms} ms`, waited_ms: ms };
      if (!look) return answer(result);
      const frame = await computer.capture(context.caller, context.signal);
      return answer(
        { ...result, summary: `${result.summary}, then captured ${frame.id}`, frame: frame.data() },
        await imageOf(frame),
      );
    },
  );
}
