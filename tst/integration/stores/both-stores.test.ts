import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSkillFolder } from "../../../src/skills/folder.js";
import type { Skill } from "../../../src/skills/skill.js";
import { BundleDamaged, SKILLS_PREFIX, SkillStore } from "../../../src/skills/skill-store.js";
import { type ObjectStore, objectsBelow } from "../../../src/stores/object-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { agentenv } from "../../harness/computer.js";
import { S3Server } from "../../harness/rclone.js";
import { largeSkill, SkillFolder, skillOf, skillText } from "../../harness/skill-folder.js";

let server: S3Server;
let folder: string;
beforeAll(async () => {
  Object.assign(process.env, S3Server.credentials);
  server = await S3Server.start();
  folder = await mkdtemp(join(tmpdir(), "store-"));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** A store of its own for each test, and the folder in which its objects lie as files. */
const STORES = [
  {
    kind: "a folder",
    url: (name: string) => pathToFileURL(join(folder, name)).href,
    files: (name: string) => join(folder, name),
  },
  {
    kind: "an S3 server",
    url: (name: string) => server.url(name),
    files: (name: string) => join(server.folder, name),
  },
];

const FILES = {
  "SKILL.md": skillText("notes"),
  "scripts/run.sh": "#!/bin/sh\necho hi\n",
  "same-as-run.sh": "#!/bin/sh\necho hi\n",
  "logo.bin": Uint8Array.from([0, 255, 254, 10]),
};
const hexOf = ({ digest }: Skill) => digest.slice("sha256:".length);
const shaOf = (skill: Skill, path: string) => skill.files.find((file) => file.path === path)?.sha256 ?? "";

describe.each(STORES)("skills in $kind", ({ url, files }) => {
  async function open(name: string): Promise<{ store: ObjectStore; skills: SkillStore } & AsyncDisposable> {
    const store = await openStore(url(name));
    return { store, skills: new SkillStore(store), [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
  }
  async function keysIn(store: ObjectStore): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of objectsBelow(store, SKILLS_PREFIX)) keys.push(key);
    return keys;
  }

  it("come out as they went in, are listed, and are stored once for the same content", async () => {
    await using opened = await open("in-and-out");
    const { store, skills } = opened;
    const skill = skillOf(FILES);
    expect(await skills.list()).toEqual([]);
    expect(await skills.add(skill)).toEqual({ added: true });
    expect(await skills.add(skill)).toEqual({ added: false });
    const prefix = `${SKILLS_PREFIX}${hexOf(skill)}/`;
    const distinct = [...new Set(skill.files.map(({ sha256 }) => prefix + sha256))];
    expect(await keysIn(store)).toEqual([...distinct, `${prefix}manifest.json`].sort());
    const back = await skills.get(skill.digest);
    expect(back.digest).toBe(skill.digest);
    expect(back.bytes("logo.bin")).toEqual(Buffer.from(FILES["logo.bin"]));
    expect(await skills.verify(skill.digest)).toEqual([]);
    const [listed, ...more] = await skills.list();
    expect(listed).toMatchObject({ digest: skill.digest, name: "notes", files: 4 });
    expect(Math.abs(Date.now() - Number(listed?.added))).toBeLessThan(60_000);
    expect(more).toEqual([]);
  });

  it("may have 512 files of 16 MiB", async () => {
    await using opened = await open("large");
    const skill = largeSkill("large", 511, 32_000);
    const told: number[] = [];
    await opened.skills.add(skill, { onProgress: (done) => told.push(done) });
    expect(told).toHaveLength(512);
    expect(told.at(-1)).toBe(512);
    expect((await opened.skills.get(skill.digest)).digest).toBe(skill.digest);
    expect(await opened.skills.verify(skill.digest)).toEqual([]);
  });

  it("that aren't there are an error that says so", async () => {
    await using opened = await open("none");
    await expect(opened.skills.get(`sha256:${"0".repeat(64)}`)).rejects.toThrow(/has no skill sha256:0000/);
    await expect(opened.skills.verify("../../etc")).rejects.toThrow(/is no digest/);
  });

  it("are whole when ten processes add the same content at once", async () => {
    using made = new SkillFolder("notes", FILES);
    const adding = Array.from({ length: 10 }, () =>
      agentenv(["skills", "add", made.folder, "--store", url("ten"), "--json"]),
    );
    const exits = await Promise.all(adding.map(({ exited }) => exited));
    const { digest } = readSkillFolder(made.folder);
    for (const { code, stdout, stderr } of exits) {
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout).digest).toBe(digest);
    }
    await using opened = await open("ten");
    expect(await keysIn(opened.store)).toHaveLength(4);
    expect(await opened.skills.verify(digest)).toEqual([]);
    expect(await opened.skills.list()).toHaveLength(1);
  });

  it("are never half there for someone who reads while others add", async () => {
    await using opened = await open("reading");
    let absent = 0;
    let whole = 0;
    for (let round = 0; round < 8; round += 1) {
      const skill = largeSkill("reading", 40, 500, `round ${round}`);
      let adding = true;
      const adds = Promise.all([opened.skills.add(skill), opened.skills.add(skill)]).finally(() => {
        adding = false;
      });
      while (adding || whole === 0) {
        const seen = await opened.skills.get(skill.digest).catch((thrown: Error) => thrown);
        if (seen instanceof Error) {
          expect(seen.message).toMatch(/has no skill/);
          absent += 1;
        } else {
          expect(seen.digest).toBe(skill.digest);
          whole += 1;
        }
      }
      await adds;
      expect(await opened.skills.verify(skill.digest)).toEqual([]);
    }
    expect(absent).toBeGreaterThan(0);
    expect(whole).toBeGreaterThan(0);
  });

  it("with one flipped byte are found damaged, the file named, and given to nobody", async () => {
    await using opened = await open("flipped");
    const { skills } = opened;
    const skill = skillOf(FILES);
    await skills.add(skill);
    const object = join(files("flipped"), SKILLS_PREFIX, hexOf(skill), shaOf(skill, "logo.bin"));
    const bytes = readFileSync(object);
    bytes.writeUInt8(bytes.readUInt8(1) ^ 1, 1);
    writeFileSync(object, bytes);
    const faults = [{ path: "logo.bin", fault: "tampered" }];
    expect(await skills.verify(skill.digest)).toEqual(faults);
    const refused = await skills.get(skill.digest).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(BundleDamaged);
    expect(refused).toMatchObject({ faults, message: expect.stringContaining("logo.bin is tampered") });
    await skills.add(skill, { rewrite: true });
    expect(await skills.verify(skill.digest)).toEqual([]);
  });

  it("with a flipped byte in the manifest are found damaged, and mended by the next add", async () => {
    await using opened = await open("manifest");
    const { skills } = opened;
    const skill = skillOf(FILES);
    await skills.add(skill);
    const manifest = join(files("manifest"), SKILLS_PREFIX, hexOf(skill), "manifest.json");
    const bytes = readFileSync(manifest);
    bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20);
    writeFileSync(manifest, bytes);
    expect(await skills.verify(skill.digest)).toEqual([{ path: "manifest.json", fault: "tampered" }]);
    expect((await skills.list())[0]).toMatchObject({ digest: skill.digest, name: undefined });
    expect(await skills.add(skill)).toEqual({ added: true });
    expect(await skills.verify(skill.digest)).toEqual([]);
  });

  it("with an object deleted or added are found damaged, each named, and the deleted one is put again by the next add", async () => {
    await using opened = await open("objects");
    const { store, skills } = opened;
    const skill = skillOf(FILES);
    await skills.add(skill);
    const prefix = `${SKILLS_PREFIX}${hexOf(skill)}/`;
    await store.delete(prefix + shaOf(skill, "scripts/run.sh"));
    await store.put(`${prefix}evil`, Buffer.from("evil"));
    expect(await skills.verify(skill.digest)).toEqual([
      { path: "same-as-run.sh", fault: "missing" },
      { path: "scripts/run.sh", fault: "missing" },
      { path: "evil", fault: "added" },
    ]);
    await expect(skills.get(skill.digest)).rejects.toThrow(/scripts\/run\.sh is missing, evil is added/);
    expect(await skills.add(skill)).toEqual({ added: true });
    expect(await skills.verify(skill.digest)).toEqual([{ path: "evil", fault: "added" }]);
  });

  it("are collected but for those to keep; one to keep that isn't there stops it before anything is deleted", async () => {
    await using opened = await open("gc");
    const { store, skills } = opened;
    const [kept, old, older] = ["kept", "old", "older"].map((name) =>
      skillOf({ "SKILL.md": skillText(name), a: name }),
    );
    if (kept === undefined || old === undefined || older === undefined) throw new Error("three skills");
    for (const skill of [kept, old, older]) await skills.add(skill);
    // Somebody is adding this one right now.
    const begun = `${SKILLS_PREFIX}${"5".repeat(64)}/`;
    await store.put(begun + "6".repeat(64), Buffer.from("half"));
    await expect(skills.gc([kept.digest, `sha256:${"0".repeat(64)}`])).rejects.toThrow(/nothing was removed/);
    expect(await skills.list()).toHaveLength(3);
    expect(await skills.gc([kept.digest])).toEqual({
      removed: [old.digest, older.digest].sort(),
      kept: [kept.digest],
      needed: [],
      unfinished: [`sha256:${"5".repeat(64)}`],
    });
    expect((await skills.list()).map(({ digest }) => digest)).toEqual([kept.digest]);
    expect(await skills.verify(kept.digest)).toEqual([]);
    expect(await keysIn(store)).toHaveLength(4);
  });

  it("can be added, verified, got, listed, packed and collected from the command line", async () => {
    using made = new SkillFolder("notes", FILES);
    const skills = async (...args: string[]) => {
      const exit = await agentenv(["skills", ...args, "--store", url("cli")]).exited;
      return { ...exit, lines: exit.stdout.trim().split("\n") };
    };
    const added = await skills("add", made.folder);
    const { digest } = readSkillFolder(made.folder);
    expect(added.stdout, added.stderr).toBe(`${digest}\n`);
    expect(added.stderr).toMatch(/^notes: 4 files \(\d+ bytes\) stored in /);
    expect((await skills("add", made.folder)).stderr).toMatch(/already in/);
    expect((await skills("verify", digest)).stdout).toBe(`${digest} is whole\n`);
    const out = join(made.parent, "out", "notes");
    expect((await skills("get", digest, "--out", out)).code).toBe(0);
    expect(readSkillFolder(out).digest).toBe(digest);
    expect((await skills("list")).lines).toEqual([expect.stringMatching(`^${digest}  notes  4 files`)]);
    const tars = ["stored.tar", "folder.tar"].map((name) => join(made.parent, name)) as [string, string];
    expect((await skills("pack", digest, "--out", tars[0])).code).toBe(0);
    expect((await skills("pack", made.folder, "--out", tars[1])).code).toBe(0);
    expect(readFileSync(tars[0]).equals(readFileSync(tars[1]))).toBe(true);
    expect((await skills("add", tars[0])).stdout).toBe(`${digest}\n`);
    expect((await skills("gc", "--keep", digest)).stderr).toMatch(/0 removed, 1 kept/);
    const object = join(files("cli"), SKILLS_PREFIX, digest.slice(7), shaOf(readSkillFolder(out), "logo.bin"));
    writeFileSync(object, "evil");
    const verified = await skills("verify", digest);
    expect(verified).toMatchObject({ code: 1, stdout: "tampered logo.bin\n" });
    const refused = await skills("get", digest, "--out", join(made.parent, "evil"));
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/logo\.bin is tampered/) });
    expect(refused.stderr).not.toMatch(/^\s+at /m);
    expect(() => readSkillFolder(join(made.parent, "evil"))).toThrow(/can't be read/);
  });
});
