import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.js";
import { SkillStore } from "../../../src/skills/skill-store.js";
import { FolderStore } from "../../../src/stores/folder-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { S3Server } from "../../harness/rclone.js";
import { largeSkill, skillOf, skillText } from "../../harness/skill-folder.js";

const SMALL = skillOf({ "SKILL.md": skillText("small") });
const LARGE = largeSkill("large", 40, 100_000);

let small: string;
let server: S3Server;
beforeAll(async () => {
  small = mkdtempSync(join(tmpdir(), "full-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", small]);
  Object.assign(process.env, S3Server.credentials);
  server = await S3Server.start(join(small, "buckets"));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  execFileSync("umount", [small]);
  rmSync(small, { recursive: true });
});

function mount(how: "ro" | "rw"): void {
  execFileSync("mount", ["-o", `remount,${how}`, small]);
}

it("a folder that is full says so, keeps what it had, and holds no half of what didn't fit", async () => {
  await using store = await openStore(pathToFileURL(join(small, "store")).href);
  const skills = new SkillStore(store);
  await skills.add(SMALL);
  const refused = await skills.add(LARGE).catch((thrown: unknown) => thrown);
  expect(refused).toBeInstanceOf(SetupError);
  expect(refused).toMatchObject({ message: expect.stringMatching(/is full: ENOSPC/), hint: "make room there" });
  expect(await skills.verify(SMALL.digest)).toEqual([]);
  await expect(skills.get(LARGE.digest)).rejects.toThrow(/has no skill/);
  expect(readdirSync(join(small, "store", ".unfinished"))).toEqual([]);
  rmSync(join(small, "store"), { recursive: true });
});

it("a folder that is cut off in the middle of an add says so, keeps what it had, and holds no bundle of what didn't arrive", async () => {
  // One after the other: as long as a file is being written, its file system can't be made to take no more.
  const skills = new SkillStore(Object.assign(new FolderStore(join(small, "store")), { parallel: 1 }));
  await skills.add(SMALL);
  const other = largeSkill("other", 20, 1_000);
  let put = 0;
  const cutOff = skills.add(other, {
    onProgress() {
      put += 1;
      if (put === 5) mount("ro");
    },
  });
  const refused = await cutOff.catch((thrown: unknown) => thrown).finally(() => mount("rw"));
  expect(refused).toBeInstanceOf(SetupError);
  expect(refused).toMatchObject({ message: expect.stringMatching(/EROFS/), hint: expect.stringContaining("--store") });
  expect(await skills.verify(SMALL.digest)).toEqual([]);
  await expect(skills.get(other.digest)).rejects.toThrow(/has no skill/);
  await skills.add(other);
  expect(await skills.verify(other.digest)).toEqual([]);
  rmSync(join(small, "store"), { recursive: true });
});

it("an S3 server on a full disk fails the add, keeps what it had, and holds no bundle of what didn't fit", async () => {
  const quick = { deadline: 20_000, attempt: 5_000, attempts: 3, firstWait: 20, longestWait: 100 };
  await using store = await openStore(server.url("full"), quick);
  const skills = new SkillStore(store);
  await skills.add(SMALL);
  await expect(skills.add(LARGE)).rejects.toThrow(/the store s3:\/\/bucket\/full/);
  expect(await skills.verify(SMALL.digest)).toEqual([]);
  await expect(skills.get(LARGE.digest)).rejects.toThrow(/has no skill/);
});
