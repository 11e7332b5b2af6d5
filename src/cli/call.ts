import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
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
  $ agentenv call http://127.0.0.1:18765 computer_screenshot --out desk.png`,
  )
  .action(async (url: string, tool: string, args: JsonObject, given: GivenOptions & { out?: string }) => {
    const options = remoteOptions(given);
    const result = await withSession(url, options, (client) => client.call(tool, args));
    const images = (result.content ?? []).filter((block): block is ImageContent => block.type === "image");
    if (given.out !== undefined) saveImage(given.out, images);
    if (options.json) printJson(result);
    else show(result, given.out);
    if (result.isError) process.exitCode = 1;
  });

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
  writeFileSync(file, Buffer.from(image.data, "base64"));
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
