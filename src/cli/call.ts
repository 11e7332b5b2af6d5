import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { closest } from "../closest.js";
import { messageOf, SetupError } from "../errors.js";
import type { CallToolResult, ImageContent, JsonObject } from "../protocol/tool.js";
import { note, print, printJson } from "./output.js";
import { type GivenOptions, remoteCommand, remoteOptions, withSession } from "./remote.js";

/** `agentenv call URL TOOL JSON`: one tool call by hand. */
export const callCommand = remoteCommand(new Command("call"))
  .description("Call a tool. The exit code is 1 when it answers an error.")
  .argument("<tool>", "the tool's name")
  .argument("[arguments]", "its arguments as a JSON object", parseArguments, {})
  .option("--out <file>", "write the answer's image to this file")
  .addHelpText(
    "after",
    `
Examples:
  $ agentenv call http://127.0.0.1:18765 computer_click '{"x": 640, "y": 400}'
  $ agentenv call http://127.0.0.1:18765 computer_screenshot --out desk.png

A point without a frame_id is one of a screenshot that is taken first.`,
  )
  .action(async (url: string, tool: string, args: JsonObject, given: GivenOptions & { out?: string }) => {
    const options = remoteOptions(given);
    const result = await withSession(url, options, async (client) => {
      const tools = (await client.tools()).map(({ name }) => name);
      if (!tools.includes(tool)) {
        const near = closest(tool, tools);
        throw new SetupError(`there is no tool ${JSON.stringify(tool)}`, {
          hint: `${near === undefined ? "" : `did you mean ${near}? `}agentenv tools ${url} lists those that there are`,
        });
      }
      if (pointsWithoutFrame(tool, args)) await client.call("computer_screenshot", {});
      return await client.call(tool, args);
    });
    const images = (result.content ?? []).filter((block): block is ImageContent => block.type === "image");
    if (given.out !== undefined) saveImage(given.out, images);
    if (options.json) printJson(result);
    else show(result, given.out);
    if (result.isError) process.exitCode = 1;
  });

/** Each call by hand is a session of its own, which has seen no frame yet that a point could be in. */
function pointsWithoutFrame(tool: string, args: JsonObject): boolean {
  return (
    tool.startsWith("computer_") && args.frame_id === undefined && ("x" in args || "path" in args || "region" in args)
  );
}

function parseArguments(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Said below, with the same words as for a value that isn't an object.
  }
  throw new InvalidArgumentError(`It is not a JSON object, such as '{"x": 10, "y": 20}'.`);
}

/** Writes the last image that an answer holds. */
export function saveImage(file: string, images: readonly ImageContent[]): void {
  const image = images.at(-1);
  if (image === undefined) {
    note("the answer holds no image, so no file was written");
    process.exitCode = 1;
    return;
  }
  try {
    writeFileSync(file, Buffer.from(image.data, "base64"));
  } catch (thrown) {
    throw new SetupError(`the image can't be written: ${messageOf(thrown)}`, {
      hint: "name a file in a folder that is there and that you may write to",
      cause: thrown,
    });
  }
  note(`wrote ${file} (${image.mimeType})`);
}

function show(result: CallToolResult, out: string | undefined): void {
  for (const block of result.content ?? []) {
    if (block.type === "text") print(String(block.text));
    else if (block.type !== "image") print(JSON.stringify(block));
    else if (out === undefined) note("the answer holds an image: --out FILE writes it to a file");
  }
  if (result.structuredContent !== undefined) print(JSON.stringify(result.structuredContent, null, 2));
}
