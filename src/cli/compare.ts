import { Command } from "commander";
import { driverModule, loadClass } from "../bundles/load-class.js";
import type { DriverComparison } from "../computer/comparison.js";
import { SetupError } from "../errors.js";
import { packageRoot } from "../package-root.js";
import { dataFolder } from "./data-folder.js";
import { note, print, printJson, styled } from "./output.js";
import { type GivenOptions, remoteCommand, remoteOptions, requireComputer } from "./remote.js";

/** `agentenv compare URL`: what a computer serves against what its driver's own server serves. */
export const compareCommand = remoteCommand(new Command("compare"))
  .description("Compare a computer with its driver's own MCP server. The exit code is 1 on any difference.")
  .option("--driver <driver>", "the computer's driver", "cua-driver")
  .addHelpText("after", "\nExample:\n  $ agentenv compare http://127.0.0.1:18765")
  .action(async (url: string, given: GivenOptions & { driver: string }) => {
    const { json, ...options } = remoteOptions(given);
    const { token } = options;
    const comparison = await comparisonOf(given.driver);
    await requireComputer(url, options);
    const { compared, differences } = await comparison.compare({
      url,
      dataDir: dataFolder(),
      onProgress: note,
      ...(token === undefined ? {} : { token }),
    });
    if (json) printJson({ compared, differences });
    else {
      for (const difference of differences) print(`${styled("red", "differs")} ${difference}`);
      print(`${compared} answers compared, ${differences.length} differences`);
    }
    if (differences.length > 0) process.exitCode = 1;
  });

async function comparisonOf(driver: string): Promise<DriverComparison> {
  const found = await loadClass(packageRoot, driverModule(driver, "agentenv compare"));
  const { comparison } = found as { comparison?: DriverComparison };
  if (comparison !== undefined) return comparison;
  throw new SetupError(`the driver ${driver} has no server of its own`, { hint: "such as --driver cua-driver" });
}
