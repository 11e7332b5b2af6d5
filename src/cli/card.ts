import { Command } from "commander";
import { CARD_PATH, Card } from "../protocol/card.js";
import { print, printJson, styled, table } from "./output.js";
import { type GivenOptions, get, refusal, remoteCommand, remoteOptions } from "./remote.js";

/** `agentenv card URL`: what an environment says of itself. */
export const cardCommand = remoteCommand(new Command("card"))
  .description("Show an environment's card: its extensions, tools and data operations.")
  .addHelpText("after", "\nExample:\n  $ agentenv card http://127.0.0.1:18765")
  .action(async (url: string, given: GivenOptions) => {
    const options = remoteOptions(given);
    const { status, body } = await get(url, CARD_PATH, options);
    if (status !== 200) throw refusal(url, status, body);
    if (options.json) {
      printJson(body);
      return;
    }
    const card = Card.parse(body);
    const { extensions, tools, operations } = card.capabilities;
    print(`${styled("bold", card.name)}  AgentEnv protocol ${card.protocolVersion}`);
    print(`\nExtensions`);
    print(table((extensions ?? []).map((each) => [`  ${each.uri}`, each.description ?? ""])));
    print(`\nTools     ${(tools ?? []).length}: see agentenv tools ${url}`);
    print(`Data      ${(operations ?? []).join(", ") || "none"}`);
  });
