import { Command } from "commander";
import { note, print, printJson, styled, table } from "./output.js";
import { type GivenOptions, remoteCommand, remoteOptions, withSession } from "./remote.js";

/** `agentenv tools URL`: the tools that an agent finds. */
export const toolsCommand = remoteCommand(new Command("tools"))
  .description("List the tools that an agent finds, as its role sees them.")
  .addHelpText("after", "\nExample:\n  $ agentenv tools http://127.0.0.1:18765 --role grader")
  .action(async (url: string, given: GivenOptions) => {
    const options = remoteOptions(given);
    const tools = await withSession(url, options, (client) => client.tools());
    if (options.json) {
      printJson(tools);
      return;
    }
    if (tools.length === 0) {
      note("it serves no tool");
      return;
    }
    print(table(tools.map((tool) => [styled("bold", tool.name), shortened(tool.description)])));
    print(`\n${tools.length} ${tools.length === 1 ? "tool" : "tools"}`);
  });

/** The first sentence, or as much of it as fits beside a name. */
function shortened(text = ""): string {
  const sentence = text.split(/(?<=\.)\s|\n/, 1)[0] ?? "";
  return sentence.length > 100 ? `${sentence.slice(0, 99).trimEnd()}…` : sentence;
}
