import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { writeSkillFolder } from "../../../src/skills/folder.js";
import { SkillStore } from "../../../src/skills/skill-store.js";
import { openStore } from "../../../src/stores/open-store.js";
import { agentenvMain } from "../../harness/computer.js";
import { S3Server } from "../../harness/rclone.js";
import { largeSkill, skillOf, skillText } from "../../harness/skill-folder.js";
import { onSmallDisk } from "../../harness/small-disk.js";

const run = promisify(execFile);
const SMALL = skillOf({ "SKILL.md": skillText("small") });
const LARGE = largeSkill("large", 40, 100_000);
const OTHER = largeSkill("other", 20, 1_000);

let root: string;
let disk: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "full-"));
  disk = mkdtempSync(join(root, "disk-"));
  for (const skill of [SMALL, LARGE, OTHER]) writeSkillFolder(skill, join(root, skill.name));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** What commands say that are run one after the other with a store on a disk of 2 MiB, as a script in which `skills` is one. */
async function onDisk(script: string): Promise<string[]> {
  const skills = 'skills() { "$NODE" "$MAIN" skills "$@" --store "$STORE" 2>&1; echo "exit code $?"; }';
  const command = onSmallDisk(2, disk, ["sh", "-c", `${skills}\n${script}`]);
  const env = {
    PATH: process.env.PATH,
    HOME: root,
    NODE: process.execPath,
    MAIN: agentenvMain,
    STORE: pathToFileURL(join(disk, "store")).href,
    ROOT: root,
    DISK: disk,
    CUT_OFF: `--import=${pathToFileURL(join(packageRoot, "tst/fakes/cut-off-at-rename.mjs")).href}`,
  };
  const [program, ...args] = command;
  return (await run(program, args, { env, timeout: 60_000 })).stdout.trimEnd().split("\n");
}

const whole = [`${SMALL.digest} is whole`, "exit code 0"];
const absent = ({ digest }: typeof SMALL) => [
  expect.stringContaining(`has no skill ${digest}`),
  expect.stringContaining("agentenv skills list"),
  "exit code 1",
];

it("a folder that is full says so, keeps what it had, and holds no half of what didn't fit", async () => {
  const said = await onDisk(`
    skills add "$ROOT/small" >/dev/null
    skills add "$ROOT/large"
    skills verify ${SMALL.digest}
    skills verify ${LARGE.digest}
    ls -A store/.unfinished`);
  expect(said).toEqual([
    expect.stringMatching(/is full: ENOSPC/),
    "  make room there",
    "exit code 1",
    ...whole,
    ...absent(LARGE),
  ]);
});

it("a folder that is cut off in the middle of an add says so, keeps what it had, and holds no half of what didn't arrive", async () => {
  const said = await onDisk(`
    skills add "$ROOT/small" >/dev/null
    (export NODE_OPTIONS="$CUT_OFF" CUT_OFF_AT_RENAME="$DISK 5"; skills add "$ROOT/other")
    skills verify ${SMALL.digest}
    skills verify ${OTHER.digest}
    mount -o remount,rw "$DISK"
    skills add "$ROOT/other" >/dev/null
    skills verify ${OTHER.digest}`);
  expect(said).toEqual([
    expect.stringMatching(/can't write .*: EROFS/),
    expect.stringContaining("--store"),
    "exit code 1",
    ...whole,
    ...absent(OTHER),
    `${OTHER.digest} is whole`,
    "exit code 0",
  ]);
});

it("an S3 server on a full disk fails the add, keeps what it had, and holds no bundle of what didn't fit", async () => {
  Object.assign(process.env, S3Server.credentials);
  await using server = await S3Server.start(disk, (command) => onSmallDisk(2, disk, command));
  const quick = { deadline: 20_000, attempt: 5_000, attempts: 3, firstWait: 20, longestWait: 100 };
  await using store = await openStore(server.url("full"), quick);
  const skills = new SkillStore(store);
  await skills.add(SMALL);
  await expect(skills.add(LARGE)).rejects.toThrow(/the store s3:\/\/bucket\/full/);
  expect(await skills.verify(SMALL.digest)).toEqual([]);
  await expect(skills.get(LARGE.digest)).rejects.toThrow(/has no skill/);
});
