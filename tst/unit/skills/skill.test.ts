import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.js";
import { SkillGetResult } from "../../../src/protocol/skill.js";
import { skillAnswer, skillFromAnswer } from "../../../src/skills/answer.js";
import { readSkillFolder, writeSkillFolder } from "../../../src/skills/folder.js";
import { readFrontmatter } from "../../../src/skills/frontmatter.js";
import { packSkill, unpackSkill } from "../../../src/skills/tar.js";
import { largeSkill, SkillFolder, skillOf, skillText } from "../../harness/skill-folder.js";

const FILES = {
  "SKILL.md": skillText("notes", 'license: MIT\nversion: 2\nmetadata:\n  author: "us"\n'),
  "scripts/run.sh": "#!/bin/sh\necho hi\n",
  "logo.bin": Uint8Array.from([0, 255, 254, 10]),
  "caf\u00e9/menu.md": "coffee",
};

describe("a skill's folder", () => {
  it("is read into its frontmatter, text and files with path, size and digest", () => {
    using made = new SkillFolder("notes", FILES);
    const skill = readSkillFolder(made.folder);
    expect(skill.name).toBe("notes");
    expect(skill.frontmatter).toEqual({
      name: "notes",
      description: "What a test needs.",
      license: "MIT",
      version: 2,
      metadata: { author: "us" },
    });
    expect(skill.text).toBe(FILES["SKILL.md"]);
    expect(skill.files.map(({ path }) => path)).toEqual([
      "SKILL.md",
      "caf\u00e9/menu.md",
      "logo.bin",
      "scripts/run.sh",
    ]);
    expect(skill.files[2]).toEqual({
      path: "logo.bin",
      size: 4,
      sha256: hash("sha256", Buffer.from(FILES["logo.bin"]), "hex"),
    });
  });

  it("has the digest of its sorted file list's canonical JSON", () => {
    using made = new SkillFolder("notes", FILES);
    const list = execFileSync("sh", ["-c", "LC_ALL=C find . -type f | cut -c3- | sort"], { cwd: made.folder });
    const rows = list.toString().trim().split("\n");
    const json = rows.map((path) => {
      const bytes = readFileSync(join(made.folder, path));
      const sum = execFileSync("sha256sum", [path], { cwd: made.folder }).toString().slice(0, 64);
      return `{"path":"${path}","sha256":"${sum}","size":${bytes.length}}`;
    });
    const expected = `sha256:${hash("sha256", `[${json.join(",")}]`, "hex")}`;
    expect(readSkillFolder(made.folder).digest).toBe(expected);
  });

  it("has the same digest on a file system that decomposes names, with other modes and times, and from a link to it", () => {
    using composed = new SkillFolder("notes", FILES);
    const { "caf\u00e9/menu.md": menu, ...others } = FILES;
    using decomposed = new SkillFolder("notes", { "cafe\u0301/menu.md": menu, ...others });
    chmodSync(join(decomposed.folder, "scripts/run.sh"), 0o700);
    execFileSync("touch", ["-d", "2001-01-01", join(decomposed.folder, "SKILL.md")]);
    const { digest } = readSkillFolder(composed.folder);
    expect(readSkillFolder(decomposed.folder).digest).toBe(digest);
    mkdirSync(join(decomposed.parent, "elsewhere"));
    const link = join(decomposed.parent, "elsewhere", "notes");
    symlinkSync(decomposed.folder, link);
    expect(readSkillFolder(link).digest).toBe(digest);
  });

  it("may hold a link to one of its own files, which is read as that file", () => {
    using made = new SkillFolder("notes", FILES);
    symlinkSync("../logo.bin", join(made.folder, "scripts", "logo"));
    const linked = readSkillFolder(made.folder);
    expect(linked.bytes("scripts/logo")).toEqual(Buffer.from(FILES["logo.bin"]));
  });

  it("may have 512 files and 16 MiB, and not a byte more", () => {
    const text = skillText("large");
    const rest = 16 * 1024 * 1024 - text.length - 510;
    const small = Object.fromEntries(Array.from({ length: 510 }, (_, index) => [`f${index}`, "x"]));
    expect(skillOf({ "SKILL.md": text, ...small, rest: Buffer.alloc(rest) }).files).toHaveLength(512);
    expect(() => skillOf({ "SKILL.md": text, ...small, rest: Buffer.alloc(rest + 1) })).toThrow(/over 16777216 bytes/);
  });

  it("without a SKILL.md, or that isn't there, is an error that says what a skill is", () => {
    using made = new SkillFolder("notes", { "skill.md": skillText("notes") });
    expect(() => readSkillFolder(made.folder)).toThrow(/SKILL\.md is missing/);
    expect(() => readSkillFolder(join(made.parent, "none"))).toThrow(SetupError);
  });
});

describe("a skill's name", () => {
  const named = (name: string) => readFrontmatter(skillText(name), "a test").frontmatter.name;

  it.each(["a", "a-b", "a9", "x".repeat(64)])("may be %s", (name) => {
    expect(named(name)).toBe(name);
  });

  it.each(["-a", "a-", "a--b", "A", "a_b", "caf\u00e9", "x".repeat(65)])("may not be %s", (name) => {
    expect(() => named(name)).toThrow(/name: /);
  });
});

describe("frontmatter", () => {
  const read = (lines: string) => readFrontmatter(`---\nname: a\n${lines}\n---\nbody\n`, "a test");

  it("has a description of 1 to 1,024 characters and compatibility of up to 500, counted in code points", () => {
    expect(read(`description: ${"\u{1f600}".repeat(1024)}\ncompatibility: ${"x".repeat(500)}`).body).toBe("body\n");
    expect(() => read(`description: ${"x".repeat(1025)}`)).toThrow(/description: has more than 1024/);
    expect(() => read("description: ''")).toThrow(/description: is empty/);
    expect(() => read(`description: x\ncompatibility: ${"x".repeat(501)}`)).toThrow(/compatibility/);
  });

  it("may have Windows line ends", () => {
    expect(readFrontmatter("---\r\nname: a\r\ndescription: x\r\n---\r\nbody", "a test").body).toBe("body");
  });

  it("is named with its file when something is missing", () => {
    expect(() => read("x: 1")).toThrow(/^a test: SKILL\.md has frontmatter that breaks the rules: description/);
  });
});

describe("a tar of a skill", () => {
  it("has the same bytes for the same content, wherever it is made", async () => {
    using one = new SkillFolder("notes", FILES);
    using other = new SkillFolder("notes", Object.fromEntries(Object.entries(FILES).reverse()));
    const tar = await packSkill(readSkillFolder(one.folder));
    expect((await packSkill(readSkillFolder(other.folder))).equals(tar)).toBe(true);
    // What it was in the first version: another version of the library must not change it.
    expect(hash("sha256", tar, "hex")).toBe("d2ce26c17c216d039f7d949d2be3971faa2d8662d46b7156c9ba84076bc4f5cd");
  });

  it("is what tar unpacks to the folder that was packed, scripts executable", async () => {
    using made = new SkillFolder("notes", FILES);
    const skill = readSkillFolder(made.folder);
    writeFileSync(join(made.parent, "notes.tar"), await packSkill(skill));
    mkdirSync(join(made.parent, "out"));
    const said = execFileSync("tar", ["xf", "../notes.tar"], { cwd: join(made.parent, "out"), stdio: "pipe" });
    expect(said.toString()).toBe("");
    const out = join(made.parent, "out", "notes");
    expect(readSkillFolder(out).digest).toBe(skill.digest);
    expect(statSync(join(out, "scripts/run.sh")).mode & 0o111).not.toBe(0);
    expect(statSync(join(out, "SKILL.md")).mode & 0o111).toBe(0);
  });

  it("is read back, as are those that tar makes, with ./ before its names and long paths", async () => {
    const long = `${"long-part/".repeat(20)}\u00fc.md`;
    using made = new SkillFolder("notes", { ...FILES, [long]: "deep" });
    const skill = readSkillFolder(made.folder);
    expect((await unpackSkill(await packSkill(skill), "ours")).digest).toBe(skill.digest);
    for (const format of ["gnu", "pax", "ustar"]) {
      const tar = execFileSync("tar", [`--format=${format}`, "-cf", "-", "./notes"], { cwd: made.parent });
      expect((await unpackSkill(tar, format)).digest, format).toBe(skill.digest);
    }
  });

  it("that is larger than a skill can be is refused before it is read", async () => {
    await expect(unpackSkill(Buffer.alloc(20 * 1024 * 1024), "huge")).rejects.toThrow(/over/);
  });
});

describe("a skill written to a folder", () => {
  it("is the same skill there, and replaces an empty folder", () => {
    using made = new SkillFolder("notes", FILES);
    const skill = readSkillFolder(made.folder);
    const out = join(made.parent, "new", "notes");
    mkdirSync(out, { recursive: true });
    writeSkillFolder(skill, out);
    expect(readSkillFolder(out).digest).toBe(skill.digest);
    expect(readdirSync(join(made.parent, "new"))).toEqual(["notes"]);
  });

  it("never touches a folder that holds something", () => {
    using made = new SkillFolder("notes", FILES);
    const skill = readSkillFolder(made.folder);
    using taken = new SkillFolder("notes", { "mine.txt": "mine" });
    expect(() => writeSkillFolder(skill, taken.folder)).toThrow(/isn't there yet|can't be written/);
    expect(readdirSync(taken.folder)).toEqual(["mine.txt"]);
    expect(readdirSync(taken.parent)).toEqual(["notes"]);
  });
});

it("a skill survives skill/v1: text as text, the rest in base64, the same digest", () => {
  const skill = skillOf(FILES);
  const answer = SkillGetResult.parse(JSON.parse(JSON.stringify(skillAnswer(skill))));
  expect(answer.content).toBe(FILES["SKILL.md"]);
  expect(answer.files.find(({ path }) => path === "logo.bin")).toEqual({ path: "logo.bin", bytes: "AP/+Cg==" });
  expect(answer.files.find(({ path }) => path === "scripts/run.sh")).toHaveProperty("content");
  expect(skillFromAnswer(answer, "http://env").digest).toBe(skill.digest);
  const large = largeSkill("large", 511, 32_000);
  expect(skillFromAnswer(skillAnswer(large), "http://env").digest).toBe(large.digest);
});
