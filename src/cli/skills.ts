import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { Command } from "commander";
import { EnvStore } from "../bundles/env-store.js";
import { messageOf, SetupError } from "../errors.js";
import { fetchSkill } from "../skills/fetch-skill.js";
import { readSkillFolder, writeSkillFolder } from "../skills/folder.js";
import { shownPath } from "../skills/refused.js";
import type { Skill } from "../skills/skill.js";
import { SkillStore } from "../skills/skill-store.js";
import { MAX_PACK_BYTES, packSkill, unpackSkill } from "../skills/tar.js";
import { openStore } from "../stores/open-store.js";
import { note, print, printJson, styled, table } from "./output.js";
import { ProgressBar } from "./progress.js";
import { remoteOptions } from "./remote.js";
import { STORE_OPTION, storeUrl } from "./store.js";

interface Given {
  store?: string;
  json?: boolean;
}

const addCommand = storeCommand("add")
  .description("Store a skill, once for the same content, and print its digest.")
  .argument("<source>", "a skill's folder, a tar of one, or the URL of an environment whose skill to take")
  .option("--rewrite", "put every file again, to mend a damaged bundle")
  .option("--token-file <file>", "a file that holds the environment's bearer token; else the variable AGENTENV_TOKEN")
  .addHelpText(
    "after",
    `
Examples:
  $ agentenv skills add skills/computer
  $ agentenv skills add http://127.0.0.1:18765 --store 's3://bucket/prefix?endpoint=http://127.0.0.1:9000'`,
  )
  .action(async (source: string, given: Given & { rewrite?: boolean; tokenFile?: string }) => {
    const skill = await readSource(source, given);
    const { url, added } = await withStore(given, async (skills, url) => {
      using bar = new ProgressBar("storing");
      const rewrite = given.rewrite ?? false;
      return { url, ...(await skills.add(skill, { rewrite, onProgress: bar.update })) };
    });
    if (given.json) printJson({ ...told(skill), added, store: url });
    else {
      note(`${skill.name}: ${counted(skill)} ${added ? "stored in" : "already in"} ${url}`);
      print(skill.digest);
    }
  });

const getCommand = storeCommand("get")
  .description("Write a stored skill to a folder. Every byte is checked before the first is written.")
  .argument("<digest>", "the digest that add printed")
  .requiredOption("--out <folder>", "the skill's folder, which must not be there yet or be empty")
  .addHelpText("after", "\nExample:\n  $ agentenv skills get sha256:4f1c… --out skills/computer")
  .action(async (digest: string, given: Given & { out: string }) => {
    const skill = await withStore(given, (skills) => readStored(skills, digest));
    const out = fromPerson(given.out);
    writeSkillFolder(skill, out);
    if (given.json) printJson({ ...told(skill), out });
    else print(`${skill.name}: ${counted(skill)} written to ${out}`);
    if (basename(out) !== skill.name) note(`agents take it as a skill only from a folder named ${skill.name}`);
  });

const verifyCommand = storeCommand("verify")
  .description("Check every byte of a stored skill. The exit code is 1 when something is wrong.")
  .argument("<digest>", "the digest that add printed")
  .addHelpText("after", "\nExample:\n  $ agentenv skills verify sha256:4f1c…")
  .action(async (given: string, options: Given) => {
    const digest = asDigest(given);
    const faults = await withStore(options, (skills) => {
      using bar = new ProgressBar("verifying");
      return skills.verify(digest, bar.update);
    });
    if (options.json) printJson({ digest, faults });
    else {
      for (const { path, fault } of faults) print(`${styled("red", fault)} ${shownPath(path)}`);
      if (faults.length === 0) print(`${digest} is whole`);
    }
    if (faults.length > 0) process.exitCode = 1;
  });

const listCommand = storeCommand("list")
  .description("List the stored skills.")
  .addHelpText("after", "\nExample:\n  $ agentenv skills list --store file:///srv/store")
  .action(async (given: Given) => {
    const found = await withStore(given, (skills) => skills.list());
    if (given.json) printJson(found);
    else if (found.length === 0) note("no skill is stored");
    else {
      const rows = found.map(({ digest, name, files, bytes, added }) => [
        digest,
        name ?? styled("red", "damaged"),
        files === 1 ? "1 file" : `${files} files`,
        `${bytes} bytes`,
        added.toISOString().slice(0, 19),
      ]);
      print(table(rows));
    }
  });

const gcCommand = storeCommand("gc")
  .description(
    "Delete every stored skill but those to keep and those that stored envs have. Not for while others add or put what you " +
      "don't keep.",
  )
  .requiredOption("--keep <digest...>", "the digests to keep")
  .addHelpText("after", "\nExample:\n  $ agentenv skills gc --keep sha256:4f1c… sha256:90ab…")
  .action(async (given: Given & { keep: string[] }) => {
    await using store = await openStore(storeUrl(given.store));
    const needed = await new EnvStore(store).neededSkills().catch((thrown: unknown) => {
      if (!(thrown instanceof SetupError)) throw thrown;
      const { message, hint } = thrown;
      throw new SetupError(`${message}\nnothing was removed: which skills the stored envs have can't be told`, {
        ...(hint === undefined ? {} : { hint }),
        cause: thrown,
      });
    });
    const result = await new SkillStore(store).gc(given.keep.map(asDigest), needed);
    if (given.json) printJson(result);
    else {
      for (const digest of result.removed) print(`removed ${digest}`);
      for (const digest of result.needed) print(`kept ${digest}: a stored env has it`);
      for (const digest of result.unfinished) print(`left ${digest}: it is less than an hour old and not finished`);
      note(`${result.removed.length} removed, ${result.kept.length + result.needed.length} kept`);
    }
  });

const packCommand = storeCommand("pack")
  .description("Make a tar of a skill: the same content gives the same bytes, wherever it is made.")
  .argument("<source>", "a skill's folder, the URL of an environment, or the digest of a stored skill")
  .requiredOption("--out <file>", "the tar to write; - is standard output")
  .option("--token-file <file>", "a file that holds the environment's bearer token; else the variable AGENTENV_TOKEN")
  .addHelpText("after", "\nExample:\n  $ agentenv skills pack skills/computer --out computer.tar")
  .action(async (source: string, given: Given & { out: string; tokenFile?: string }) => {
    const stored = /^(sha256:)?[0-9a-f]{64}$/.test(source);
    const skill = stored
      ? await withStore(given, (skills) => readStored(skills, source))
      : await readSource(source, given);
    const tar = await packSkill(skill);
    if (given.out === "-") {
      process.stdout.write(tar);
      return;
    }
    const out = fromPerson(given.out);
    writeOut(out, tar);
    const sha256 = createHash("sha256").update(tar).digest("hex");
    if (given.json) printJson({ ...told(skill), out, tar: { sha256, bytes: tar.length } });
    else print(`${skill.digest} packed in ${out}`);
  });

/** `agentenv skills …`: skills as bundles in an object store. */
export const skillsCommand = new Command("skills")
  .description("Store skills by their content, take them out again, and pack them.")
  .addHelpText(
    "after",
    `
A store is file:///FOLDER or s3://BUCKET/PREFIX, with ?endpoint=URL where it isn't AWS's own. Without --store it is the
variable AGENTENV_STORE, else a folder in the data folder. Credentials are found as AWS's own tools find them.

Example:
  $ agentenv skills add skills/computer`,
  )
  .addCommand(addCommand)
  .addCommand(getCommand)
  .addCommand(verifyCommand)
  .addCommand(listCommand)
  .addCommand(gcCommand)
  .addCommand(packCommand);

function storeCommand(name: string): Command {
  return new Command(name).option("--store <url>", STORE_OPTION).option("--json", "print JSON for machines");
}

async function withStore<T>(given: Given, work: (skills: SkillStore, url: string) => Promise<T>): Promise<T> {
  await using store = await openStore(storeUrl(given.store));
  return await work(new SkillStore(store), store.url);
}

async function readSource(source: string, given: { tokenFile?: string }): Promise<Skill> {
  if (/^https?:\/\//.test(source)) {
    const { token } = remoteOptions(given);
    return fetchSkill(source, token === undefined ? {} : { authorization: `Bearer ${token}` });
  }
  const path = fromPerson(source);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return readSkillFolder(path);
  if (found.size > MAX_PACK_BYTES) throw new SetupError(`${path} is too large to be a tar of a skill`);
  return unpackSkill(readFileSync(path), path);
}

async function readStored(skills: SkillStore, digest: string): Promise<Skill> {
  using bar = new ProgressBar("reading");
  return await skills.get(asDigest(digest), bar.update);
}

function asDigest(text: string): string {
  return /^[0-9a-f]{64}$/.test(text) ? `sha256:${text}` : text;
}

/** A path as the person meant it, who may stand elsewhere than npm does. */
function fromPerson(path: string): string {
  return resolve(process.env.INIT_CWD ?? process.cwd(), path);
}

function writeOut(file: string, bytes: Buffer): void {
  try {
    writeFileSync(file, bytes);
  } catch (cause) {
    throw new SetupError(`${file} can't be written: ${messageOf(cause)}`, { cause });
  }
}

function told({ digest, name, files }: Skill) {
  return { digest, name, files: files.length, bytes: sizeOf(files) };
}

function counted({ files }: Skill): string {
  return `${files.length} ${files.length === 1 ? "file" : "files"} (${sizeOf(files)} bytes)`;
}

function sizeOf(files: Skill["files"]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}
