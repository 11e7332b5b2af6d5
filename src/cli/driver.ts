import { resolve } from "node:path";
import { Command } from "commander";
import { driverInstaller } from "../bundles/driver-installer.js";
import type { DriverInstaller } from "../computer/installer.js";
import { SetupError } from "../errors.js";
import { dataFolder } from "./data-folder.js";
import { unlessInterrupted } from "./interrupted.js";
import { note, print, printJson, styled } from "./output.js";

const CLEANING = "taking away what is unfinished";

const installCommand = new Command("install")
  .description("Install a driver's program, checked against its pinned digests.")
  .argument("<driver>", "the driver's alias, such as cua-driver")
  .option("--from <file>", "install from this file; nothing is downloaded")
  .option("--json", "print JSON for machines")
  .addHelpText("after", "\nExample:\n  $ agentenv driver install cua-driver")
  .action(async (driver: string, options: { from?: string; json?: boolean }) => {
    const installer = await installerOf(driver);
    const request = {
      dataDir: dataFolder(),
      ...(options.from === undefined ? {} : { from: resolve(process.env.INIT_CWD ?? process.cwd(), options.from) }),
      onProgress: note,
    };
    const installed = await unlessInterrupted(CLEANING, (signal) => installer.install({ ...request, signal }));
    if (installed === undefined) return;
    const { folder, fresh } = installed;
    if (options.json) printJson({ driver, version: installer.version, folder, fresh });
    else print(`${driver} ${installer.version} ${fresh ? "installed" : "is installed"} in ${folder}`);
  });

const verifyCommand = new Command("verify")
  .description("Compare what is installed with what is pinned. The exit code is 1 on any difference.")
  .argument("<driver>", "the driver's alias, such as cua-driver")
  .option("--json", "print JSON for machines")
  .addHelpText("after", "\nExample:\n  $ agentenv driver verify cua-driver")
  .action(async (driver: string, options: { json?: boolean }) => {
    const installer = await installerOf(driver);
    const differences = await installer.verify(dataFolder());
    if (options.json) printJson({ driver, version: installer.version, differences });
    else {
      for (const difference of differences) print(`${styled("red", "differs")} ${difference}`);
      if (differences.length === 0) print(`${driver} ${installer.version} is as pinned`);
    }
    if (differences.length > 0) process.exitCode = 1;
  });

const pinCommand = new Command("pin")
  .description("Pin another version of a driver's program, and say what that changes.")
  .argument("<driver>", "the driver's alias, such as cua-driver")
  .requiredOption("--version <version>", "the version to pin, such as 0.37.0")
  .option("--json", "print JSON for machines")
  .addHelpText("after", "\nExample:\n  $ agentenv driver pin cua-driver --version 0.37.0")
  .action(async (driver: string, options: { version: string; json?: boolean }) => {
    const installer = await installerOf(driver);
    if (installer.pin === undefined) throw new SetupError(`no version of the driver ${driver} is pinned`);
    const pin = installer.pin.bind(installer);
    const request = { version: options.version, onProgress: note };
    const pinned = await unlessInterrupted(CLEANING, (signal) => pin({ ...request, signal }));
    if (pinned === undefined) return;
    const { file, changes } = pinned;
    if (options.json) {
      printJson({ driver, version: options.version, file, changes });
      return;
    }
    for (const change of changes) print(change);
    print(changes.length === 0 ? `${file} pins it already` : `${file} is written`);
  });

/** `agentenv driver …`: the programs that drivers bring. */
export const driverCommand = new Command("driver")
  .description("Install a driver's program, verify what is installed, and move to another version.")
  .addHelpText("after", "\nExample:\n  $ agentenv driver install cua-driver")
  .addCommand(installCommand)
  .addCommand(verifyCommand)
  .addCommand(pinCommand);

async function installerOf(driver: string): Promise<DriverInstaller> {
  const installer = await driverInstaller(driver);
  if (installer !== undefined) return installer;
  throw new SetupError(`the driver ${driver} needs nothing installed`, { hint: "start it: agentenv up" });
}
