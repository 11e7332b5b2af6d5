import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { idOf } from "../../../src/bundles/env-record.js";
import { EnvStore } from "../../../src/bundles/env-store.js";
import { SkillStore } from "../../../src/skills/skill-store.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import { agentenv } from "../../harness/computer.js";
import { provenEnv } from "../../harness/proven-env.js";
import { skillOf, skillText } from "../../harness/skill-folder.js";

const env = provenEnv();
const id = idOf(env.record);
const [mailing = ""] = env.skills.map(({ digest }) => digest);
const kept = skillOf({ "SKILL.md": skillText("kept") });
const old = skillOf({ "SKILL.md": skillText("old") });

let folder: string;
let store: FolderStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "gc-"));
  store = new FolderStore(folder);
  await new EnvStore(store).put(env);
  for (const skill of [kept, old]) await new SkillStore(store).add(skill);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const gc = (...args: string[]) => agentenv(["skills", "gc", "--store", store.url, ...args]).exited;
const stored = async () => (await new SkillStore(store).list()).map(({ digest }) => digest).sort();

describe("agentenv skills gc, in a store that holds envs too,", () => {
  it("keeps the skills of every stored env, and says so: the env can still be read whole", async () => {
    const exit = await gc("--keep", kept.digest);
    expect(exit.code, exit.stderr).toBe(0);
    expect(exit.stdout).toBe(`removed ${old.digest}\nkept ${mailing}: a stored env has it\n`);
    expect(exit.stderr).toContain("1 removed, 2 kept");
    expect(await stored()).toEqual([kept.digest, mailing].sort());
    await new EnvStore(store).get(id);
  });

  it("tells machines which those are", async () => {
    const { stdout } = await gc("--keep", kept.digest, "--json");
    expect(JSON.parse(stdout)).toEqual({
      removed: [old.digest],
      kept: [kept.digest],
      needed: [mailing],
      unfinished: [],
    });
  });

  it("doesn't stop at a skill that a stored env has and the store lost", async () => {
    await new SkillStore(store).gc([kept.digest, old.digest]);
    expect(await stored()).toEqual([kept.digest, old.digest].sort());
    const exit = await gc("--keep", kept.digest);
    expect(exit).toMatchObject({ code: 0, stdout: `removed ${old.digest}\n` });
  });

  it("removes nothing while a stored record is damaged, as nobody knows what that needs", async () => {
    const record = join(folder, "agentenv-envs", id.slice(7), "record.json");
    const text = readFileSync(record, "utf8");
    writeFileSync(record, text.replace("office", "OFFICE"));
    const before = await stored();
    const exit = await gc("--keep", kept.digest);
    expect(exit).toMatchObject({ code: 1, stdout: "" });
    expect(exit.stderr).toMatch(new RegExp(`the env ${id} in .* is damaged[^]*nothing was removed`));
    expect(await stored()).toEqual(before);
  });
});
