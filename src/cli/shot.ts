import { Command } from "commander";
import type { ImageContent, TextContent } from "../protocol/tool.js";
import { saveImage } from "./call.js";
import { note, printJson } from "./output.js";
import { type GivenOptions, noComputer, remoteCommand, remoteOptions, withSession } from "./remote.js";

const SCREENSHOT = "computer_screenshot";

/** `agentenv shot URL --out FILE`: what the computer shows now. */
export const shotCommand = remoteCommand(new Command("shot"))
  .description("Save a screenshot of a computer.")
  .requiredOption("--out <file>", "the file to write; .jpg and .jpeg give a JPEG, anything else a PNG")
  .addHelpText("after", "\nExample:\n  $ agentenv shot http://127.0.0.1:18765 --out desk.png")
  .action(async (url: string, given: GivenOptions & { out: string }) => {
    const options = remoteOptions(given);
    const format = /\.jpe?g$/i.test(given.out) ? "jpeg" : "png";
    const result = await withSession(url, options, async (client) => {
      // A token of an agent doesn't reach the card.
      if (!(await client.tools()).some(({ name }) => name === SCREENSHOT)) throw noComputer(url);
      return await client.call(SCREENSHOT, { format });
    });
    const text = result.content.find((block): block is TextContent => block.type === "text")?.text;
    if (result.isError) {
      note(String(text));
      process.exitCode = 1;
      return;
    }
    saveImage(
      given.out,
      result.content.filter((block): block is ImageContent => block.type === "image"),
    );
    if (options.json) printJson({ ...result.structuredContent, file: given.out });
  });
