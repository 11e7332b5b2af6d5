import { Command } from "commander";
import { EnvStore } from "../bundles/env-store.js";
import { countsOf } from "../probe/report.js";
import { openStore } from "../stores/open-store.js";
import { note, print, printJson, styled, table } from "./output.js";
import { STORE_OPTION, storeUrl } from "./store.js";

interface Given {
  store?: string;
  json?: boolean;
}

const listCommand = storeCommand("list")
  .description("List the stored envs.")
  .addHelpText("after", "\nExample:\n  $ agentenv envs list --store file:///srv/store")
  .action(async (given: Given) => {
    const found = await withStore(given, (envs) => envs.list());
    if (given.json) {
      printJson(found.map(({ id, record, added }) => ({ id, env: record?.env, added, skills: record?.skills })));
      return;
    }
    if (found.length === 0) note("no env is stored");
    else {
      const rows = found.map(({ id, record, added }) => [
        id,
        record?.env ?? styled("red", "damaged"),
        Object.keys(record?.platforms ?? {}).join(" "),
        added.toISOString().slice(0, 19),
      ]);
      print(table(rows));
    }
  });

const showCommand = storeCommand("show")
  .description("Show the record of a stored env: what it holds and needs, and the boot that proved it.")
  .argument("<id>", "the id that put printed, or the beginning of it")
  .addHelpText("after", "\nExample:\n  $ agentenv envs show 4f1c")
  .action(async (given: string, options: Given) => {
    const { id, record, boot } = await withStore(options, async (envs) => {
      const id = await envs.find(given);
      return { id, record: await envs.record(id), boot: await envs.boot(id) };
    });
    if (options.json) {
      printJson({ id, ...record, metadata: { validated_boot: boot } });
      return;
    }
    const { passed } = countsOf(boot.report.checks);
    const { os, arch } = boot.platform;
    print(
      table([
        ["id", id],
        ["env", record.env],
        ...Object.entries(record.platforms).map(([platform, { driver, packages }]) => [
          platform,
          [driver?.alias, driver?.version, driver?.executable && `sha256:${driver.executable.sha256}`, ...packages]
            .filter((each) => each !== undefined)
            .join(" "),
        ]),
        ...record.skills.map(({ name, digest }) => ["skill", `${name} ${digest}`]),
        ["proven", `${boot.at} on ${os}/${arch}: ${passed} checks passed, with agentenv ${boot.agentenv}`],
        ...record.files.map(({ path, size }) => ["file", `${path} (${size} bytes)`]),
      ]),
    );
  });

/** `agentenv envs …`: what `agentenv put` has stored. */
export const envsCommand = new Command("envs")
  .description("List and show the envs that `agentenv put` has stored.")
  .addHelpText("after", "\nExample:\n  $ agentenv envs list")
  .addCommand(listCommand)
  .addCommand(showCommand);

function storeCommand(name: string): Command {
  return new Command(name).option("--store <url>", STORE_OPTION).option("--json", "print JSON for machines");
}

async function withStore<T>({ store: named }: Given, work: (envs: EnvStore) => Promise<T>): Promise<T> {
  await using store = await openStore(storeUrl(named));
  return await work(new EnvStore(store));
}
