#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { SetupError } from "../errors.js";
import { isCurrentNode, OLDEST_NODE } from "../node-version.js";
import { packageRoot } from "../package-root.js";
import { reportFailure } from "./failure.js";

if (!isCurrentNode(process.versions.node)) {
  reportFailure(
    new SetupError(`agentenv needs Node ${OLDEST_NODE} or newer, and this is ${process.versions.node}`, {
      hint: "in a clone, `npm start` and `npm run agentenv -- …` bring a current one",
    }),
  );
  process.exit(1);
}

/** Each command and the file that holds it, loaded when it is wanted: a start should not wait for the others. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  up: async () => (await import("./up.js")).upCommand,
  put: async () => (await import("./put.js")).putCommand,
  run: async () => (await import("./run.js")).runCommand,
  envs: async () => (await import("./envs.js")).envsCommand,
  ready: async () => (await import("./ready.js")).readyCommand,
  card: async () => (await import("./card.js")).cardCommand,
  tools: async () => (await import("./tools.js")).toolsCommand,
  call: async () => (await import("./call.js")).callCommand,
  shot: async () => (await import("./shot.js")).shotCommand,
  compare: async () => (await import("./compare.js")).compareCommand,
  probe: async () => (await import("./probe.js")).probeCommand,
  skills: async () => (await import("./skills.js")).skillsCommand,
  init: async () => (await import("./init.js")).initCommand,
  driver: async () => (await import("./driver.js")).driverCommand,
};

const version = (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string }).version;

const program = new Command("agentenv")
  .description("Environments that AI agents act in, served over MCP.")
  .version(version)
  // Behind a command its own options count alone: `driver pin` has a --version too.
  .enablePositionalOptions()
  .addHelpText(
    "after",
    "\nExample:\n  $ agentenv up bundles/desk\n\nagentenv COMMAND --help says more of each command.",
  );

const wanted = COMMANDS[process.argv[2] ?? ""];
const commands = wanted === undefined ? Object.values(COMMANDS) : [wanted];
for (const command of await Promise.all(commands.map((load) => load()))) program.addCommand(command);
for (const command of [program, ...program.commands, ...program.commands.flatMap((each) => each.commands)]) {
  // A list of commands says what each is for; its own help says the rest.
  command.summary(command.description().split(/(?<=\.)\s/, 1)[0] ?? "");
  command.exitOverride().showHelpAfterError("(--help says what it takes)").showSuggestionAfterError();
}

// Whoever reads the output may have seen enough, as `head` has.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

try {
  await program.parseAsync();
} catch (thrown) {
  // Commander has said what is wrong with the command line, or shown the help that was asked for.
  if (thrown instanceof CommanderError) process.exitCode = thrown.exitCode === 0 ? 0 : 2;
  else {
    reportFailure(thrown);
    process.exitCode = 1;
  }
}
