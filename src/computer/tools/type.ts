import { z } from "zod";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { AgentEnvError } from "../../errors.js";
import { InputResult } from "../../protocol/computer.js";
import { act } from "../act.js";
import type { Computer } from "../computer.js";
import { characterCount, untypeable } from "../keys.js";
import { ACTS, screenshot } from "./arguments.js";

export function typeTool(computer: Computer): ServedTool {
  const { driver } = computer;
  const most = driver.maxTextLength;
  return defineTool(
    {
      name: "computer_type",
      description:
        "Type text into whatever has the keyboard focus, key by key; the clipboard stays as it is. Text that the computer " +
        "can't type whole is refused before anything is typed.",
      input: z.strictObject({
        text: z
          .string()
          .describe(`Any Unicode text of up to ${most} characters; \\n presses Enter and \\t presses Tab`),
        screenshot,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const characters = checkText(args.text, most);
      await computer.ready.ensure(context.signal);
      return act(computer, context, {
        planned: { kind: "type", characters },
        frame: computer.frames.latest(context.caller),
        mapped: false,
        screenshot: args.screenshot,
        send: (signal, delivery) => driver.typeText(args.text, signal, delivery),
        summary: () => `Typed ${characters} character${characters === 1 ? "" : "s"}`,
      });
    },
  );
}

/** How many characters the text has. Throws `invalid_argument` for text that no computer of ours types; it is never quoted. */
function checkText(text: string, most: number): number {
  const characters = characterCount(text);
  if (characters === 0) throw new AgentEnvError("invalid_argument", "text is empty");
  if (characters > most) {
    throw new AgentEnvError(
      "invalid_argument",
      `text has ${characters} characters, and at most ${most} are typed at once`,
      {
        hint: "split it into several calls",
      },
    );
  }
  const refused = untypeable(text);
  if (refused.length > 0) {
    throw new AgentEnvError("invalid_argument", `text has characters that can't be typed: ${refused.join(", ")}`, {
      hint: "press keys with computer_key",
    });
  }
  return characters;
}
