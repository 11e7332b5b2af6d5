import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { driverInstaller } from "../bundles/driver-installer.js";
import type { PlatformNeeds } from "../bundles/env-record.js";
import { EnvStore, type StoredEnv } from "../bundles/env-store.js";
import { ownPlatform } from "../bundles/make-record.js";
import { placeEnv } from "../bundles/place-env.js";
import type { DriverInstaller } from "../computer/installer.js";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import { openStore } from "../stores/open-store.js";
import { agentenvVersion } from "./agentenv-version.js";
import { dataFolder } from "./data-folder.js";
import { unlessInterrupted } from "./interrupted.js";
import { note } from "./output.js";
import { STORE_OPTION, storeUrl } from "./store.js";
import { startEnv, type UpOptions, withStartOptions } from "./up.js";

interface RunOptions extends UpOptions {
  store?: string;
}

/** `agentenv run ID`: starts an env from its record, wherever the store can be reached. */
export const runCommand = withStartOptions(
  new Command("run")
    .description(
      "Start an env from its record, and serve it until Ctrl-C. All of it comes from the store, the driver's program too " +
        "where it is there, and every byte is checked against its digest before the first is written.",
    )
    .argument("<id>", "the id that `agentenv put` printed, or the beginning of it")
    .option("--store <url>", STORE_OPTION),
)
  .addHelpText(
    "after",
    `
Examples:
  $ agentenv run 4f1c --port 0 --json
  $ agentenv run sha256:4f1c… --store 's3://bucket/prefix?endpoint=http://127.0.0.1:9000'`,
  )
  .action(async (given: string, options: RunOptions) => {
    const dataDir = dataFolder();
    const url = storeUrl(options.store);
    const env = await unlessInterrupted("taking away what is unfinished", (signal) =>
      fetchEnv(given, url, dataDir, signal),
    );
    if (env === undefined) return;
    const name = env.record.env.replace(/^.*\//, "");
    const folder = placeEnv(join(dataDir, "envs"), env.id.replace("sha256:", ""), name, env.contents);
    await startEnv(folder, options);
  });

/** Reads an env whole, and installs the program of its driver where that isn't there. */
async function fetchEnv(given: string, url: string, dataDir: string, signal: AbortSignal): Promise<StoredEnv> {
  await using store = await openStore(url);
  const envs = new EnvStore(store);
  const env = await envs.get(await envs.find(given));
  const needs = needsHere(env);
  const installer = needs.driver === undefined ? undefined : await driverInstaller(needs.driver.alias);
  checkDriver(env, needs, installer);
  const [proven, own] = [env.boot.agentenv, agentenvVersion()];
  if (proven !== own) note(`this env was proven with agentenv ${proven}, and this is ${own}: it may serve other tools`);
  const pinned = installer?.programs[ownPlatform()];
  if (installer === undefined || pinned === undefined || (await installer.verify(dataDir)).length === 0) return env;
  const bytes = await envs.program(env.id, pinned);
  const { alias = "" } = needs.driver ?? {};
  if (bytes === undefined) {
    note(`${url} has no ${alias} for ${ownPlatform()}: installing it from elsewhere`);
    await installer.install({ dataDir, signal, onProgress: note });
  } else {
    note(`installing ${alias} ${installer.version} from ${url}`);
    await withFile(dataDir, bytes, (program) => installer.install({ dataDir, program, signal }));
  }
  return env;
}

function needsHere({ id, record }: StoredEnv): PlatformNeeds {
  const needs = record.platforms[ownPlatform()];
  if (needs !== undefined) return needs;
  throw new SetupError(`the env ${id} is for ${Object.keys(record.platforms).join(", ")}; this is ${ownPlatform()}`, {
    hint: "run it on such a machine",
  });
}

/** What was proven is what is to run: a driver of another version may not do what this one did. */
function checkDriver({ id }: StoredEnv, { driver }: PlatformNeeds, installer: DriverInstaller | undefined): void {
  if (driver === undefined) return;
  const { alias, version, executable } = driver;
  const here = installer?.programs[ownPlatform()];
  if (version === installer?.version && executable?.sha256 === here?.sha256) return;
  const named = (of: string | undefined, sha256: string | undefined) => `${of ?? "none"} (sha256 ${sha256 ?? "none"})`;
  throw new SetupError(
    `the env ${id} was proven with ${alias} ${named(version, executable?.sha256)}, and this agentenv pins ` +
      named(installer?.version, here?.sha256),
    { hint: "run it with the agentenv that put it, or put its bundle again with this one" },
  );
}

/** A file in the data folder for as long as `work` reads it. */
async function withFile<T>(dataDir: string, bytes: Buffer, work: (file: string) => Promise<T>): Promise<T> {
  const file = join(dataDir, `.fetched-${randomUUID()}`);
  try {
    makeFolder(dataDir);
    writeFileSync(file, bytes, { flag: "wx", mode: 0o600 });
    return await work(file);
  } catch (thrown) {
    if (thrown instanceof SetupError) throw thrown;
    throw new SetupError(`the driver's program can't be kept in ${dataDir}: ${messageOf(thrown)}`, {
      hint: "choose another data folder with AGENTENV_DATA, or make room or rights there",
      cause: thrown,
    });
  } finally {
    rmSync(file, { force: true });
  }
}
