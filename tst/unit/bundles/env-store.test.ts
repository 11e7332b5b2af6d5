import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { idOf, recordText } from "../../../src/bundles/env-record.js";
import { EnvStore, RecordDamaged } from "../../../src/bundles/env-store.js";
import { SetupError } from "../../../src/errors.js";
import { BundleDamaged } from "../../../src/skills/skill-store.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import { provenEnv } from "../../harness/proven-env.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "env-store-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = () => new EnvStore(new FolderStore(folder));
const env = provenEnv();
const { record } = env;
const id = idOf(record);
const program = record.platforms["linux/amd64"]?.driver?.executable ?? { size: 0, sha256: "" };

/** Every object, by its key. */
function objects(): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.startsWith(".") && statSync(join(folder, path)).isFile())
    .sort();
}

async function failure(work: Promise<unknown>): Promise<SetupError> {
  const thrown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(thrown).toBeInstanceOf(SetupError);
  return thrown as SetupError;
}

async function putObject(key: string, text: string): Promise<void> {
  await new FolderStore(folder).put(key, Buffer.from(text));
}

/** Reads all that an env is, its driver's program too. */
async function readAll(): Promise<unknown> {
  const found = await open().get(id);
  return [found, await open().program(id, program)];
}

describe("an env's record", () => {
  it("comes back whole, with files, skills, boot and program, each content stored once", async () => {
    expect(await open().put(env)).toEqual({ id, added: true });
    const found = await open().get(await open().find(id.slice(7, 15)));
    expect(found).toMatchObject({ id, record, boot: env.boot });
    expect(found.contents).toEqual(env.contents);
    expect(found.skills.map(({ digest }) => digest)).toEqual(record.skills.map(({ digest }) => digest));
    expect((await open().program(id, program))?.equals(env.program?.bytes as Buffer)).toBe(true);
    const files = objects().filter((key) => key.startsWith("agentenv-env-files/"));
    expect(files.length).toBe(2);
    expect(await open().list()).toMatchObject([{ id, record }]);
  });

  it("is one for the same content, proven by its first boot, however often and by however many it is put", async () => {
    await open().put(env);
    const before = objects();
    const again = provenEnv({ at: "2026-02-02T00:00:00.000Z" });
    expect(await open().put(again)).toEqual({ id, added: false });
    expect(objects()).toEqual(before);
    expect((await open().boot(id)).at).toBe(env.boot.at);

    rmSync(folder, { recursive: true });
    const days = Array.from({ length: 10 }, (_, day) => `2026-03-1${day}T00:00:00.000Z`);
    await Promise.all(days.map((at) => open().put(provenEnv({ at }))));
    expect((await open().list()).map((each) => each.id)).toEqual([id]);
    expect(await open().get(id)).toMatchObject({ record });
  });

  it("is another one for other content", () => {
    const [file, ...files] = record.files;
    const others = [
      { ...record, env: "office/chat" },
      { ...record, files },
      { ...record, files: [{ path: "x", size: 1, sha256: file?.sha256 ?? "" }, ...files] },
      { ...record, card: { ...record.card, name: "other" } },
      { ...record, platforms: {} },
      { ...record, skills: [] },
    ];
    expect(new Set([record, ...others].map(idOf)).size).toBe(1 + others.length);
  });

  it("is found by the beginning of its id, where only one begins so", async () => {
    const [twin, other] = twins();
    await open().put(twin);
    await open().put(other);
    const [first, second] = [idOf(twin.record), idOf(other.record)];
    expect(await open().find(first)).toBe(first);
    expect((await failure(open().find(first.slice(7, 11)))).message).toContain("the beginning of 2 envs");
    expect((await failure(open().find(first.slice(7, 11)))).hint).toContain(second);
    expect((await failure(open().find("0".repeat(64)))).message).toContain("has no env");
    expect((await failure(open().find("abc"))).hint).toContain("at least the first 4");
    expect((await failure(open().find("../../etc"))).message).toContain("is no id of an env");
  });

  it("with any one byte flipped is refused, naming the object", async () => {
    await open().put(env);
    const keys = objects();
    // Record, boot, two files, the skill's two and its manifest, the program's two pieces.
    expect(keys.length).toBe(9);
    for (const key of keys) {
      const file = join(folder, key);
      const bytes = readFileSync(file);
      const at = bytes.length >> 1;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(file, bytes);
      const thrown = await failure(readAll());
      if (key.includes("skills")) expect(thrown).toBeInstanceOf(BundleDamaged);
      else if (key.includes("programs")) expect(thrown.message).toContain(`${program.sha256} is tampered`);
      else expect(thrown.message).toMatch(new RegExp(`${key}\\)? is tampered`));
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(file, bytes);
    }
    await readAll();
  });

  it("with any one object deleted, cut or grown is refused, naming it, and mended by putting it anew", async () => {
    await open().put(env);
    for (const key of objects()) {
      const file = join(folder, key);
      const bytes = readFileSync(file);
      for (const change of ["delete", "cut", "grow"]) {
        if (change === "delete") rmSync(file);
        else writeFileSync(file, change === "cut" ? bytes.subarray(1) : Buffer.concat([bytes, Buffer.from("x")]));
        const thrown = await failure(readAll());
        const named = key.includes("skills")
          ? key.split("/")[1]
          : key.includes("boots/")
            ? "boots/"
            : key.split("/").at(-1);
        if (key.endsWith("record.json") && change === "delete") expect(thrown.message).toContain("has no env");
        else expect(thrown.message, `${change} ${key}`).toContain(named);
        await open().put(env, { rewrite: true });
        if (change !== "delete" && key.includes("boots/")) writeFileSync(file, bytes);
        await readAll();
      }
    }
  });

  it("names the env's file that is wrong, by its path too", async () => {
    await open().put(env);
    const { sha256 } = record.files.find(({ path }) => path === "env.toml") ?? {};
    rmSync(join(folder, "agentenv-env-files", sha256 ?? ""));
    const thrown = (await failure(open().get(id))) as RecordDamaged;
    expect(thrown).toBeInstanceOf(RecordDamaged);
    expect(thrown.faults).toEqual([{ object: `agentenv-env-files/${sha256}`, path: "env.toml", fault: "missing" }]);
  });

  it("that a writer couldn't finish, at whichever object it failed, is none, and the next put completes it", async () => {
    for (let fails = 1; ; fails += 1) {
      let puts = 0;
      const store = new FolderStore(folder);
      const put = store.put.bind(store);
      store.put = async (key, bytes) => {
        puts += 1;
        if (puts >= fails) throw new SetupError("no room");
        await put(key, bytes);
      };
      const ended = await new EnvStore(store).put(env).catch((thrown: Error) => thrown.message);
      if (ended !== "no room") {
        expect(fails).toBe(10);
        break;
      }
      expect(await open().list()).toEqual([]);
      expect((await failure(open().get(id))).message).toContain("has no env");
      await open().put(env);
      await readAll();
      rmSync(folder, { recursive: true });
    }
  });

  it.each<[string, { path: string; size?: number }[], string]>([
    ["leaves its folder", [{ path: "../evil" }], "leaves its folder with .."],
    ["leaves its folder further down", [{ path: "a/../../evil" }], "leaves its folder with .."],
    ["is absolute", [{ path: "/etc/cron.d/evil" }], "is an absolute path"],
    ["holds a NUL", [{ path: "a\0b" }], "holds a NUL"],
    ["would be another's on some disks", [{ path: "a.js" }, { path: "A.js" }], "in case or Unicode form alone"],
    ["is a file and a folder", [{ path: "a" }, { path: "a/b" }], "is a file and a folder"],
    ["is too large to be held", [{ path: "a", size: 64 * 1024 * 1024 + 1 }], "over 67108864 bytes"],
  ])("that somebody made with a path that %s is refused before anything is fetched", async (_, files, says) => {
    const hostile = { ...record, files: files.map(({ path, size = 1 }) => ({ path, size, sha256: "0".repeat(64) })) };
    await putObject(`agentenv-envs/${idOf(hostile).slice(7)}/record.json`, recordText(hostile));
    expect((await failure(open().get(idOf(hostile)))).message).toContain(says);
  });

  it.each(["..", "office/..", "a/b/c", ".hidden", "", "office/"])(
    "that somebody made for an env called %j is none",
    async (env) => {
      const hostile = { ...record, env };
      await putObject(`agentenv-envs/${idOf(hostile).slice(7)}/record.json`, recordText(hostile));
      expect((await failure(open().get(idOf(hostile)))).message).toContain("doesn't know");
    },
  );

  it("of a kind that isn't known is refused as that, and not as damaged", async () => {
    const newer = { ...record, format: 2 as unknown as 1 };
    await open().put({ ...env, record: newer });
    expect((await failure(open().get(idOf(newer)))).message).toContain("doesn't know");
  });
});

/** Two envs whose ids begin with the same four digits. */
function twins(): [ReturnType<typeof provenEnv>, ReturnType<typeof provenEnv>] {
  const seen = new Map<string, string>();
  for (let number = 0; ; number += 1) {
    const name = `office/env${number}`;
    const prefix = idOf({ ...record, env: name }).slice(7, 11);
    const other = seen.get(prefix);
    if (other !== undefined) return [provenEnv({ env: other }), provenEnv({ env: name })];
    seen.set(prefix, name);
  }
}
