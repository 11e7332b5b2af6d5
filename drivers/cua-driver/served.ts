import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { z } from "zod";
import { messageOf, SetupError } from "../../src/errors.js";
import type { JsonObject, ToolDefinition } from "../../src/protocol/tool.js";
import { Refusals } from "./refusals.js";

/**
 * Everything that `cua-driver mcp` serves beside calls, as JSON text, read once from an executable and kept beside it.
 * The texts are the executable's own: what isn't in one of the schemas below is kept as well.
 */
export const ServedTexts = z.strictObject({
  /** The result of `initialize`. */
  initialize: z.string(),
  /** The result of `tools/list`. */
  tools: z.string(),
  /** The result of `resources/list`. */
  resources: z.string(),
  /** The result of `resources/read` for each listed resource, in the list's order. */
  reads: z.array(z.string()),
  /** The result of `skills/list`. */
  skills: z.string(),
  /** The errors that it answers wrong requests with. */
  refusals: Refusals,
  /** The skill's files as they are laid down for an agent on this system. */
  skillPack: z.array(z.strictObject({ path: z.string().regex(/^[\w.-]+(\/[\w.-]+)*$/), text: z.string() })),
});
export type ServedTexts = z.infer<typeof ServedTexts>;

const Initialize = z.looseObject({
  instructions: z.string(),
  serverInfo: z.looseObject({ name: z.string(), version: z.string() }),
  capabilities: z.looseObject({}),
});
const ToolsList = z.looseObject({
  tools: z.array(z.looseObject({ name: z.string(), inputSchema: z.looseObject({}) })),
});
const ResourceEntry = z.looseObject({ uri: z.string(), name: z.string(), mimeType: z.string(), size: z.int() });
const ResourcesList = z.looseObject({ resources: z.array(ResourceEntry) });
const ReadResult = z.looseObject({
  contents: z.tuple([z.looseObject({ uri: z.string(), mimeType: z.string(), text: z.string() })]),
});
const SkillEntry = z.looseObject({
  uri: z.string(),
  resources: z.array(
    z.looseObject({ uri: z.string(), size: z.int(), digest: z.string().regex(/^sha256:[0-9a-f]{64}$/) }),
  ),
});
const SkillsList = z.looseObject({ skills: z.array(SkillEntry) });

export interface ServedResource {
  /** As `resources/list` shows it. */
  readonly entry: z.infer<typeof ResourceEntry>;
  readonly text: string;
}

/** What `cua-driver mcp` serves, ready to be served by us. */
export interface Served {
  /** What all of the rest is read from. */
  readonly texts: ServedTexts;
  readonly version: string;
  readonly instructions: string;
  readonly capabilities: JsonObject;
  readonly tools: readonly ToolDefinition[];
  /** Keys of the result of `tools/list` beside `tools`. */
  readonly listKeys: JsonObject;
  readonly resources: readonly ServedResource[];
  /** The entries of `skills/list`, which `skills/get` answers one of as `{skill}`. */
  readonly skills: readonly z.infer<typeof SkillEntry>[];
  readonly skillPack: ServedTexts["skillPack"];
}

/** Reads the texts into values. Throws a SetupError where one is of another shape than cua-driver's. */
export function parseServed(texts: ServedTexts): Served {
  const initialize = parse("initialize", Initialize, texts.initialize);
  const { tools, ...listKeys } = parse("tools/list", ToolsList, texts.tools);
  const entries = parse("resources/list", ResourcesList, texts.resources).resources;
  return {
    texts,
    version: initialize.serverInfo.version,
    instructions: initialize.instructions,
    capabilities: initialize.capabilities,
    tools,
    listKeys,
    resources: entries.map((entry, at) => {
      const [content] = parse(`resources/read ${entry.uri}`, ReadResult, texts.reads[at] ?? "null").contents;
      if (content.uri !== entry.uri) throw new SetupError(`resources/read of ${entry.uri} answered ${content.uri}`);
      return { entry, text: content.text };
    }),
    skills: parse("skills/list", SkillsList, texts.skills).skills,
    skillPack: texts.skillPack,
  };
}

function parse<Schema extends z.ZodType>(what: string, schema: Schema, text: string): z.infer<Schema> {
  try {
    const value: unknown = JSON.parse(text);
    schema.parse(value);
    // The value itself, not zod's copy, which has its keys in another order.
    return value as z.infer<Schema>;
  } catch (thrown) {
    const detail = thrown instanceof z.ZodError ? z.prettifyError(thrown) : messageOf(thrown);
    throw new SetupError(`what cua-driver served for ${what} isn't understood:\n${detail}`, { cause: thrown });
  }
}

/**
 * Writes the texts into a new folder: the answers in `answers.json`, the errors in `refusals.json`, the skill's files as
 * files.
 */
export async function writeServed(folder: string, texts: ServedTexts): Promise<void> {
  await mkdir(folder);
  const { skillPack, refusals, ...answers } = texts;
  await writeFile(join(folder, ANSWERS), JSON.stringify(answers));
  await writeFile(join(folder, REFUSALS), JSON.stringify(refusals));
  for (const { path, text } of skillPack) {
    const file = join(folder, SKILL, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

const ANSWERS = "answers.json";
const REFUSALS = "refusals.json";
/** The folder of the skill's files, under the folder of what is served. */
export const SKILL = "skill";

/** Reads back what `writeServed` wrote. A SetupError where it can't be. */
export async function readServedTexts(folder: string): Promise<ServedTexts> {
  try {
    const [answers, refusals] = await Promise.all(
      [ANSWERS, REFUSALS].map(async (name): Promise<object> => JSON.parse(await readFile(join(folder, name), "utf8"))),
    );
    return ServedTexts.parse({ ...answers, refusals, skillPack: await readTexts(join(folder, SKILL)) });
  } catch (thrown) {
    throw new SetupError(`what cua-driver serves can't be read from ${folder}: ${messageOf(thrown)}`, {
      hint: "Install it again: agentenv driver install cua-driver",
      cause: thrown,
    });
  }
}

/** The text files under a folder, by their path in it; none where there is no such folder. */
export async function readTexts(folder: string): Promise<{ path: string; text: string }[]> {
  if (!existsSync(folder)) return [];
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(folder, path), "utf8") })));
}
