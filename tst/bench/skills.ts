import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Environment } from "../../src/index.js";
import { skillAnswer } from "../../src/skills/answer.js";
import { readSkillFolder, writeSkillFolder } from "../../src/skills/folder.js";
import { MAX_BYTES, MAX_FILES, type Skill } from "../../src/skills/skill.js";
import { SkillStore } from "../../src/skills/skill-store.js";
import { FolderStore } from "../../src/stores/folder-store.js";
import type { ObjectInfo, ObjectPage } from "../../src/stores/object-store.js";
import { largeSkill } from "../harness/skill-folder.js";
import { RawMcp } from "./clients.js";
import { type Row, row, takeTurns, timing } from "./measure.js";

const ROUNDS = 15;

/**
 * A skill at its limits, 512 files and 16 MiB: its digest against sha256sum, storing it against cp and fsync, and how long a
 * client waits for the list of it.
 */
export async function benchSkills(): Promise<{ title: string; rows: Row[] }[]> {
  const root = mkdtempSync(join(tmpdir(), "bench-"));
  try {
    const folder = join(root, "large");
    writeSkillFolder(largeSkill("large", MAX_FILES - 1, Math.floor(MAX_BYTES / MAX_FILES) - 16), folder);
    const stored = [...(await digestRows(folder)), ...(await addRows(folder, root)), await knownRow(folder, root)];
    const rows = [...stored, ...(await servedRows(folder))];
    return [{ title: "skills: 512 files, 16 MiB", rows }];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function digestRows(folder: string): Promise<Row[]> {
  const timings = await takeTurns(
    [
      { name: "sha256sum of the files", run: async () => shell("find . -type f -print0 | xargs -0 sha256sum", folder) },
      { name: "digest, rules checked", run: async () => readSkillFolder(folder).digest },
    ],
    2 * ROUNDS,
    5,
  );
  return [
    row(timings, "sha256sum of the files"),
    row(timings, "digest, rules checked", "sha256sum of the files", { most: 2 }),
  ];
}

async function addRows(folder: string, root: string): Promise<Row[]> {
  let count = 0;
  const fresh = (kind: string) => {
    count += 1;
    return join(root, `${kind}-${count}`);
  };
  // coreutils' sync with names calls fsync on each: the same promise that the store makes.
  const copy = `cp -r "$1" "$2" && find "$2" -print0 | xargs -0 sync`;
  const timings = await takeTurns(
    [
      { name: "cp -r and fsync", run: async () => shell(copy, root, folder, fresh("copy")) },
      {
        name: "add to a folder store",
        run: () => new SkillStore(new FolderStore(fresh("store"))).add(readSkillFolder(folder)),
      },
    ],
    ROUNDS,
    2,
  );
  return [row(timings, "cp -r and fsync"), row(timings, "add to a folder store", "cp -r and fsync", { most: 2 })];
}

async function knownRow(folder: string, root: string): Promise<Row> {
  mkdirSync(join(root, "known"));
  const store = new CountingStore(join(root, "known"));
  const skills = new SkillStore(store);
  const skill = readSkillFolder(folder);
  await skills.add(skill);
  const times: number[] = [];
  let requests = 0;
  for (let round = 0; round < 2 * ROUNDS; round += 1) {
    store.requests = 0;
    const started = performance.now();
    await skills.add(skill);
    times.push(performance.now() - started);
    requests = Math.max(requests, store.requests);
  }
  return { ...timing("add of known content", times), ratio: requests, against: "a request", goal: { most: 2 } };
}

/** Over HTTP on a connection that is there, as everything is; the time is the round trip's. */
async function servedRows(folder: string): Promise<Row[]> {
  await using serving = await new Carrier(readSkillFolder(folder)).serve();
  const client = await RawMcp.open(`${serving.url}/mcp`);
  try {
    const rows: Row[] = [];
    for (const method of ["skills/list", "skills/get"]) {
      const times: number[] = [];
      for (let round = -50; round < 500; round += 1) {
        const started = performance.now();
        const text = await client.text(method, { uri: "skill://large/SKILL.md" });
        if (round >= 0) times.push(performance.now() - started);
        if (text.length < 50_000) throw new Error(`${method} answered ${text.slice(0, 300)}`);
      }
      const timed = timing(method, times);
      rows.push({ ...timed, ratio: timed.p50, against: "a millisecond", goal: { most: 1 } });
    }
    return rows;
  } finally {
    await client.close();
  }
}

/** An environment that has a skill and nothing else. */
class Carrier extends Environment {
  constructor(private readonly carried: Skill) {
    super();
  }

  override skill() {
    return skillAnswer(this.carried);
  }
}

/** Counts what is asked of it. */
class CountingStore extends FolderStore {
  requests = 0;

  override put(key: string, bytes: Uint8Array): Promise<void> {
    this.requests += 1;
    return super.put(key, bytes);
  }

  override get(key: string, limit: number): Promise<Buffer | undefined> {
    this.requests += 1;
    return super.get(key, limit);
  }

  override head(key: string): Promise<ObjectInfo | undefined> {
    this.requests += 1;
    return super.head(key);
  }

  override list(prefix: string, next?: string): Promise<ObjectPage> {
    this.requests += 1;
    return super.list(prefix, next);
  }
}

function shell(script: string, cwd: string, ...args: string[]): void {
  execFileSync("sh", ["-c", script, "sh", ...args], { cwd, stdio: ["ignore", "ignore", "inherit"] });
}
