import { mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { canonicalJson } from "../../../src/protocol/canonical-json.js";
import { SkillRefused } from "../../../src/skills/refused.js";
import { digestOf, type Skill } from "../../../src/skills/skill.js";
import { SKILLS_PREFIX, SkillStore } from "../../../src/skills/skill-store.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import type { ObjectPage } from "../../../src/stores/object-store.js";
import { skillOf, skillText } from "../../harness/skill-folder.js";

const SKILL = skillOf({ "SKILL.md": skillText("notes"), "a.txt": "a", "b.txt": "b" });
const prefixOf = ({ digest }: Skill) => `${SKILLS_PREFIX}${digest.slice(7)}/`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A store from which somebody deletes an object each time before it is listed. */
class Thieved extends FolderStore {
  constructor(
    path: string,
    private thefts: number,
  ) {
    super(path);
  }

  override async list(prefix: string, next?: string): Promise<ObjectPage> {
    const page = await super.list(prefix, next);
    const [first] = page.objects;
    if (first === undefined || this.thefts === 0) return page;
    this.thefts -= 1;
    await this.delete(first.key);
    return super.list(prefix, next);
  }
}

describe("an add while something deletes what it puts", () => {
  it("puts what is gone again before it says that the bundle is there", async () => {
    const skills = new SkillStore(new Thieved(folder, 2));
    expect(await skills.add(SKILL)).toEqual({ added: true });
    expect(await skills.verify(SKILL.digest)).toEqual([]);
  });

  it("gives up in the end, says why, and leaves no bundle", async () => {
    const skills = new SkillStore(new Thieved(folder, 1_000));
    await expect(skills.add(SKILL)).rejects.toThrow(/don't stay/);
    await expect(new SkillStore(new FolderStore(folder)).get(SKILL.digest)).rejects.toThrow(/has no skill/);
  });
});

describe("gc", () => {
  it("removes what an add left that never finished, once it is an hour old", async () => {
    const store = new FolderStore(folder);
    const key = `${prefixOf(SKILL)}${"6".repeat(64)}`;
    await store.put(key, Buffer.from("half"));
    const age = (minutes: number) => utimesSync(join(folder, key), new Date(), new Date(Date.now() - minutes * 60_000));
    age(59);
    expect(await new SkillStore(store).gc([])).toEqual({
      removed: [],
      kept: [],
      needed: [],
      unfinished: [SKILL.digest],
    });
    age(61);
    expect(await new SkillStore(store).gc([])).toEqual({
      removed: [SKILL.digest],
      kept: [],
      needed: [],
      unfinished: [],
    });
    expect(await store.head(key)).toBeUndefined();
  });

  it("leaves what is not a bundle of ours", async () => {
    const store = new FolderStore(folder);
    await store.put(`${SKILLS_PREFIX}readme.txt`, Buffer.from("hi"));
    await store.put("agentenv-envs/x", Buffer.from("an env"));
    expect(await new SkillStore(store).gc([])).toEqual({ removed: [], kept: [], needed: [], unfinished: [] });
    expect(await store.head("agentenv-envs/x")).toBeDefined();
  });
});

/** A store in which everything is collected once a reader has a bundle's manifest. */
class CollectedMeanwhile extends FolderStore {
  override async get(key: string, limit: number): Promise<Buffer | undefined> {
    const bytes = await super.get(key, limit);
    if (key.endsWith("/manifest.json")) await new SkillStore(new FolderStore(this.folder)).gc([]);
    return bytes;
  }
}

it("a bundle that is collected while somebody reads it is one that isn't there, and not a damaged one", async () => {
  const skills = new SkillStore(new FolderStore(folder));
  const reader = new SkillStore(new CollectedMeanwhile(folder));
  await skills.add(SKILL);
  await expect(reader.get(SKILL.digest)).rejects.toThrow(/has no skill/);
  await skills.add(SKILL);
  await expect(reader.verify(SKILL.digest)).rejects.toThrow(/has no skill/);
  await skills.add(SKILL);
  expect(await reader.list()).toEqual([]);
});

it("a stored manifest with a hostile path, its digest right, is refused when it is read", async () => {
  const store = new FolderStore(folder);
  const [file] = SKILL.files;
  if (file === undefined) throw new Error("a file");
  const files = [{ ...file, path: "../../evil" }, file];
  const digest = digestOf(files);
  const prefix = `${SKILLS_PREFIX}${digest.slice(7)}/`;
  await store.put(prefix + file.sha256, SKILL.bytes(file.path) ?? Buffer.alloc(0));
  await store.put(`${prefix}manifest.json`, Buffer.from(canonicalJson(files)));
  const refused = await new SkillStore(store).get(digest).catch((thrown: unknown) => thrown);
  expect(refused).toBeInstanceOf(SkillRefused);
  expect(refused).toMatchObject({ path: "../../evil" });
});
