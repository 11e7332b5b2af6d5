import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyFile, copyTree, placeFile, walkTree } from "../../../src/desktop/trees.js";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "trees-"));
  mkdirSync(join(base, "env", ".git"), { recursive: true });
  mkdirSync(join(base, "env", "seed"));
  writeFileSync(join(base, "env", "env.toml"), 'type = "computer"', { mode: 0o600 });
  writeFileSync(join(base, "env", "seed", "run.sh"), "true");
  chmodSync(join(base, "env", "seed", "run.sh"), 0o700);
  symlinkSync("/etc/shadow", join(base, "env", "shadow"));
  execFileSync("mkfifo", [join(base, "env", "pipe")]);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("a walk lists files, folders and links in a fixed order, follows no link and leaves pipes out", () => {
  const entries = walkTree(base, "env", { skip: [".git"] });
  expect(entries.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
    "folder env",
    "file env/env.toml",
    "folder env/seed",
    "file env/seed/run.sh",
    "link env/shadow",
  ]);
});

test("a copy is readable by everybody, keeps what can be run, and holds links as links", () => {
  copyTree(base, walkTree(base, "env"), join(base, "copy"));
  const copy = (name: string) => lstatSync(join(base, "copy", "env", name)).mode & 0o777;
  expect([copy("env.toml"), copy("seed"), copy("seed/run.sh")]).toEqual([0o644, 0o755, 0o755]);
  expect(readlinkSync(join(base, "copy", "env", "shadow"))).toBe("/etc/shadow");
  expect(readFileSync(join(base, "copy", "env", "env.toml"), "utf8")).toBe('type = "computer"');
});

test("a file that became a link since the walk is not copied", () => {
  expect(() => copyFile(join(base, "env", "shadow"), join(base, "copied"), false)).toThrow(/ELOOP/);
  expect(() => copyFile(join(base, "env", "pipe"), join(base, "copied"), false)).toThrow(/no regular file/);
});

test("a walk stops soon after its bound", () => {
  expect(walkTree(base, "env", { maxEntries: 2 }).length).toBeLessThan(5);
});

test("a file is linked only where everybody may read it and nobody but root may change it", () => {
  const file = join(base, "package.js");
  writeFileSync(file, "1", { mode: 0o644 });
  const inode = (name: string) => lstatSync(join(base, name)).ino;
  placeFile(file, join(base, "linked"), false);
  expect(inode("linked") === inode("package.js")).toBe(process.getuid?.() === 0);
  for (const mode of [0o640, 0o664]) {
    chmodSync(file, mode);
    placeFile(file, join(base, `${mode}`), false);
    expect(inode(`${mode}`)).not.toBe(inode("package.js"));
    expect(lstatSync(join(base, `${mode}`)).mode & 0o777).toBe(0o644);
  }
});
