import { join, resolve } from "node:path";
import { messageOf, SetupError } from "../errors.js";
import { readSkillFolder } from "../skills/folder.js";
import type { Skill } from "../skills/skill.js";
import { SkillStore } from "../skills/skill-store.js";
import { openStore } from "../stores/open-store.js";

/** All of them travel to the server in one message. */
const MAX_BYTES = 64 * 1024 * 1024;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * The skills that `[skills] include` of an env names, in its order: folders, relative to `folder`, and digests, read from the
 * store at `store`, which is opened for a digest alone. Throws a SetupError that names the file, the entry and what may be
 * written there.
 */
export async function readIncludedSkills(folder: string, include: readonly string[], store: string): Promise<Skill[]> {
  const skills: Skill[] = [];
  let bytes = 0;
  for (const [index, entry] of include.entries()) {
    const where = `${join(folder, "env.toml")}: skills.include[${index}]: ${JSON.stringify(entry)}`;
    const skill = await readEntry(folder, entry, store).catch((thrown: unknown) => {
      throw new SetupError(`${where} can't be read: ${messageOf(thrown)}`, {
        hint: "name a skill's folder, relative to the env's, or sha256:… of a skill that `agentenv skills list` shows",
        cause: thrown,
      });
    });
    if (skills.some(({ name }) => name === skill.name)) {
      throw new SetupError(`${where} is a second skill named ${skill.name}`, { hint: "include it once" });
    }
    bytes += skill.files.reduce((sum, { size }) => sum + size, 0);
    if (bytes > MAX_BYTES) {
      throw new SetupError(`${where} takes the included skills over ${MAX_BYTES} bytes`, { hint: "include fewer" });
    }
    skills.push(skill);
  }
  return skills;
}

async function readEntry(folder: string, entry: string, url: string): Promise<Skill> {
  if (!entry.startsWith("sha256:")) return readSkillFolder(resolve(folder, entry));
  if (!DIGEST.test(entry)) throw new SetupError("a digest is sha256: and 64 lower-case hexadecimal digits");
  await using store = await openStore(url);
  return await new SkillStore(store).get(entry);
}
