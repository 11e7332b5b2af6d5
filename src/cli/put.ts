import { basename, dirname, resolve } from "node:path";
import { Command } from "commander";
import { type BundleEnv, readBundle } from "../bundles/bundle.js";
import { checkEnv } from "../bundles/check-env.js";
import { readEnvContent } from "../bundles/env-content.js";
import { EnvStore, type ProvenEnv } from "../bundles/env-store.js";
import { readIncludedSkills } from "../bundles/included-skills.js";
import { isBuiltHere } from "../bundles/load-class.js";
import { SetupError } from "../errors.js";
import { type CheckResult, countsOf } from "../probe/report.js";
import type { Skill } from "../skills/skill.js";
import type { ObjectStore } from "../stores/object-store.js";
import { openStore } from "../stores/open-store.js";
import { dataFolder } from "./data-folder.js";
import { unlessInterrupted } from "./interrupted.js";
import { note, print, printJson, styled } from "./output.js";
import { ProgressBar } from "./progress.js";
import { NotProven, type ProveOptions, proveEnv } from "./prove.js";
import { STORE_OPTION, storeUrl } from "./store.js";

interface PutOptions {
  store?: string;
  user?: string;
  rewrite?: boolean;
  json?: boolean;
}

/** An env with what `put` has read of it before anything is started. */
interface CheckedEnv {
  readonly env: BundleEnv;
  readonly contents: ReadonlyMap<string, Buffer>;
  readonly included: readonly Skill[];
}

/** `agentenv put BUNDLE`: proves the envs of a bundle and stores their records. */
export const putCommand = new Command("put")
  .description(
    "Prove the envs of a bundle, and store a record of each that `agentenv run` starts anywhere. Each is started and probed: " +
      "a computer at level full, an env that is a class by what can be held against any. When one of them fails, nothing is " +
      "stored, and the exit code is 1.",
  )
  .argument("<bundle>", "a folder with envs/ENV/env.toml for each of its envs, or with the env.toml of its only one")
  .option("--store <url>", STORE_OPTION)
  .option("--user <name>", "the session user while it is proven (as root; default: the env's, else agent)")
  .option("--rewrite", "put every object again, to mend a damaged record")
  .option("--json", "print JSON for machines")
  .addHelpText(
    "after",
    `
The id of a record is the digest of its content: files, card, what it needs on each platform, skills. So the same content is
one record, and the first boot that proved it stays with it.

Examples:
  $ agentenv put bundles/desk
  $ agentenv put ./office --store 's3://bucket/prefix?endpoint=http://127.0.0.1:9000'`,
  )
  .action(async (given: string, options: PutOptions) => {
    await unlessInterrupted("stopping what was started", (signal) => put(given, options, signal));
  });

async function put(given: string, options: PutOptions, signal: AbortSignal): Promise<void> {
  const url = storeUrl(options.store);
  const checked: CheckedEnv[] = [];
  for (const env of readBundle(bundleFolder(given))) checked.push(await check(env, url));
  await using store = await openStore(url);
  // A store that can't be used is told before minutes are spent.
  await store.list("agentenv-envs/");
  await store.checkWritable();
  const proven: ProvenEnv[] = [];
  for (const each of checked) {
    const env = await prove(each, url, options, signal);
    if (env === undefined) return;
    proven.push(env);
  }
  await keep(store, proven, options, signal);
}

/** Relative to where the person stood; an env.toml means its folder. */
function bundleFolder(given: string): string {
  const named = resolve(process.env.INIT_CWD ?? process.cwd(), given);
  return basename(named) === "env.toml" ? dirname(named) : named;
}

/** All that can be said of an env before it is started. */
async function check(env: BundleEnv, store: string): Promise<CheckedEnv> {
  const { folder, file } = env;
  const source = resolve(folder, "env.toml");
  const { module } = checkEnv(folder, file, {});
  if (file.type === "class" && isBuiltHere(folder, module)) {
    throw new SetupError(
      `${source}: module: ${module} is a part of agent-env, and runs as its build made it; a record holds the env's folder alone`,
      {
        hint: "put an env of your own: `agentenv init my-env` writes one, a class with all that it needs in its folder",
      },
    );
  }
  const contents = readEnvContent(folder);
  return { env, contents, included: await readIncludedSkills(folder, file.skills?.include ?? [], store) };
}

async function prove(
  { env, contents, included }: CheckedEnv,
  store: string,
  { user, json }: PutOptions,
  signal: AbortSignal,
): Promise<ProvenEnv | undefined> {
  using bar = new ProgressBar(`probing ${env.id}`);
  const options: ProveOptions = {
    dataDir: dataFolder(),
    store,
    included,
    signal,
    onStep: (step) => note(`${env.id}: ${step}`),
    onChecked: bar.update,
    ...(user === undefined ? {} : { user }),
  };
  try {
    return await proveEnv(env, contents, options);
  } catch (thrown) {
    if (!(thrown instanceof NotProven)) throw thrown;
    process.exitCode = 1;
    if (json) printJson({ env: env.id, passed: false, report: thrown.report });
    else for (const result of thrown.failed) print(failure(result));
    note(`${thrown.message}: nothing was stored`);
    return undefined;
  }
}

function failure({ check, name, status, detail }: CheckResult): string {
  return `${styled("red", status === "failed" ? "FAIL" : "----")} ${check} ${name}: ${detail}`;
}

async function keep(
  store: ObjectStore,
  proven: readonly ProvenEnv[],
  options: PutOptions,
  signal: AbortSignal,
): Promise<void> {
  const envs = new EnvStore(store);
  const kept: object[] = [];
  for (const env of proven) {
    signal.throwIfAborted();
    const { record, boot } = env;
    const { id, added } = await envs.put(env, { rewrite: options.rewrite ?? false });
    const { passed } = countsOf(boot.report.checks);
    const bytes = record.files.reduce((sum, { size }) => sum + size, 0);
    if (options.json) {
      kept.push({ id, env: record.env, added, files: record.files.length, bytes, skills: record.skills, passed });
    } else {
      const where = `${added ? "stored in" : "already in"} ${store.url}`;
      note(`${record.env}: ${passed} checks passed in ${(boot.report.ms / 1000).toFixed(1)} s, ${where}`);
      print(id);
    }
  }
  if (options.json) printJson({ store: store.url, envs: kept });
}
