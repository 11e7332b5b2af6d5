import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type Header, pack } from "tar-stream";
import { type SkillFolder, skillText } from "./skill-folder.js";

/** Of the skill that each of these pretends to be, and of its folder. */
export const HOSTILE_NAME = "hostile";
const NAME = HOSTILE_NAME;
const MIB = 1024 * 1024;

export interface HostileFolder {
  what: string;
  /** Begins from a folder with a good SKILL.md. */
  make(skill: SkillFolder): void | Promise<void>;
  path: string;
  reason: RegExp;
}

/** Folders that are no skill. `path` and `reason` are what has to be told of each. */
export const HOSTILE_FOLDERS: readonly HostileFolder[] = [
  {
    what: "a symbolic link to a file outside",
    make: ({ folder }) => symlinkSync("/etc/passwd", join(folder, "notes.md")),
    path: "notes.md",
    reason: /symbolic link that leaves/,
  },
  {
    what: "a relative link that climbs out",
    make({ folder, parent }) {
      writeFileSync(join(parent, "secret"), "secret");
      mkdirSync(join(folder, "a"));
      symlinkSync("../../secret", join(folder, "a", "up"));
    },
    path: "a/up",
    reason: /symbolic link that leaves/,
  },
  {
    what: "a link to a folder outside",
    make: ({ folder }) => symlinkSync("/etc", join(folder, "etc")),
    path: "etc",
    reason: /symbolic link that leaves/,
  },
  {
    what: "a link to a folder beside it whose name begins with its own",
    make({ folder }) {
      mkdirSync(`${folder}-too`);
      writeFileSync(join(`${folder}-too`, "x"), "x");
      symlinkSync(`../${NAME}-too/x`, join(folder, "x"));
    },
    path: "x",
    reason: /symbolic link that leaves/,
  },
  {
    what: "a link that goes around in a circle",
    make: ({ folder }) => symlinkSync("loop", join(folder, "loop")),
    path: "loop",
    reason: /link that leads nowhere/,
  },
  {
    what: "a link to its own folder, which is endless",
    make: ({ folder }) => symlinkSync(".", join(folder, "again")),
    path: "again",
    reason: /symbolic link/,
  },
  {
    what: "a link to nothing",
    make: ({ folder }) => symlinkSync("gone", join(folder, "dangling")),
    path: "dangling",
    reason: /link that leads nowhere/,
  },
  {
    what: "a link to a device",
    make: ({ folder }) => symlinkSync("/dev/zero", join(folder, "zero")),
    path: "zero",
    reason: /symbolic link that leaves/,
  },
  {
    what: "SKILL.md itself as a link out of it",
    make({ folder, parent }) {
      writeFileSync(join(parent, "SKILL.md"), skillText(NAME));
      execFileSync("rm", [join(folder, "SKILL.md")]);
      symlinkSync("../SKILL.md", join(folder, "SKILL.md"));
    },
    path: "SKILL.md",
    reason: /symbolic link that leaves/,
  },
  {
    what: "a FIFO, which a reader would wait for",
    make: ({ folder }) => void execFileSync("mkfifo", [join(folder, "pipe")]),
    path: "pipe",
    reason: /is a FIFO/,
  },
  {
    what: "a socket",
    make: ({ folder }) =>
      new Promise((resolve) => {
        const server = createServer().listen(join(folder, "socket"), () => {
          server.unref();
          resolve();
        });
      }),
    path: "socket",
    reason: /is a socket/,
  },
  {
    what: "a sparse file of 16 GiB",
    make({ folder }) {
      writeFileSync(join(folder, "sparse.bin"), "");
      truncateSync(join(folder, "sparse.bin"), 16 * 1024 * MIB);
    },
    path: "sparse.bin",
    reason: /over 16777216 bytes \(it has 17179869184\)/,
  },
  {
    what: "files that together take more than 16 MiB",
    make(skill) {
      skill.write("one.bin", Buffer.alloc(9 * MIB));
      skill.write("two.bin", Buffer.alloc(9 * MIB));
    },
    path: "two.bin",
    reason: /over 16777216 bytes/,
  },
  {
    what: "513 files",
    make(skill) {
      for (let index = 0; index < 512; index += 1) skill.write(`f${String(index).padStart(3, "0")}`, "");
    },
    path: "f511",
    reason: /one file more than 512/,
  },
  {
    what: "thousands of empty folders",
    make({ folder }) {
      for (let index = 0; index < 600; index += 1) mkdirSync(join(folder, `d${String(index).padStart(3, "0")}`));
    },
    path: "d511",
    reason: /one folder more than 512/,
  },
  {
    what: "two names that differ in case alone",
    make(skill) {
      skill.write("Guide.md", "a");
      skill.write("guide.md", "b");
    },
    path: "guide.md",
    reason: /differs from Guide\.md in case or Unicode form alone/,
  },
  {
    what: "two folders that differ in case alone",
    make(skill) {
      skill.write("Docs/a.md", "a");
      skill.write("docs/b.md", "b");
    },
    path: "docs/b.md",
    reason: /differs from Docs in case/,
  },
  {
    what: "a name in two Unicode forms",
    make(skill) {
      skill.write("caf\u00e9.md", "a");
      skill.write("cafe\u0301.md", "b");
    },
    path: "caf\u00e9.md",
    reason: /in case or Unicode form alone/,
  },
  {
    what: "a name that is a Kelvin sign beside one that is a k",
    make(skill) {
      skill.write("k.md", "a");
      skill.write("\u212a.md", "b");
    },
    path: "\u212a.md",
    reason: /differs from k\.md/,
  },
  {
    what: "a name with a line break in it",
    make: (skill) => skill.write("two\nlines", ""),
    path: "two\nlines",
    reason: /control character/,
  },
  {
    what: "a name with a backslash in it",
    make: (skill) => skill.write("..\\..\\evil", ""),
    path: "..\\..\\evil",
    reason: /backslash/,
  },
  {
    what: "a name that is not UTF-8",
    make({ folder }) {
      writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff, 0x66])]), "");
    },
    path: "f\ufffdf",
    reason: /not UTF-8/,
  },
  {
    what: "folders so deep that the path has over 1,024 bytes",
    make(skill) {
      skill.write(`${"deep/".repeat(210)}file`, "");
    },
    path: "deep/".repeat(206).slice(0, -1),
    reason: /longer than 1024 bytes/,
  },
];

const ALIASES = Array.from({ length: 9 }, (_, index) => {
  const before = index === 0 ? '"lol"' : `*a${index - 1}`;
  return `a${index}: &a${index} [${Array.from({ length: 9 }, () => before).join(", ")}]`;
}).join("\n");

/** What may stand in SKILL.md, which is then what has to be told. */
export const HOSTILE_FRONTMATTER: readonly { what: string; text: string | Buffer; reason: RegExp }[] = [
  { what: "aliases that grow to a billion", text: skillText(NAME, `${ALIASES}\n`), reason: /can't be read/ },
  { what: "an alias of itself", text: skillText(NAME, "metadata: &m\n  m: *m\n"), reason: /can't be read/ },
  { what: "lists nested 8,000 deep", text: skillText(NAME, `x: ${"[".repeat(8000)}\n`), reason: /can't be read/ },
  {
    what: "a megabyte of it",
    text: skillText(NAME, `license: ${"x".repeat(MIB)}\n`),
    reason: /more than 16384 characters/,
  },
  { what: "no end", text: `---\nname: ${NAME}\ndescription: x\n`, reason: /doesn't close/ },
  { what: "no beginning", text: "# Just text\n", reason: /doesn't begin/ },
  { what: "bytes that are no text", text: Buffer.from([0x2d, 0xff, 0xfe]), reason: /not UTF-8/ },
  { what: "the same key twice", text: skillText(NAME, `name: ${NAME}\n`), reason: /can't be read/ },
  { what: "a tag that makes an object", text: skillText(NAME, 'x: !!js/function "f"\n'), reason: /can't be read/ },
  { what: "another skill's name", text: skillText("other"), reason: /comes as "hostile"/ },
  { what: "a name with a path in it", text: skillText("../../up"), reason: /name: is not made of/ },
  { what: "metadata that is no map of strings", text: skillText(NAME, "metadata:\n  a: [1]\n"), reason: /metadata\.a/ },
];

type Entry = Partial<Header> & { name: string; content?: string | Buffer; pax?: Record<string, string> };

async function tarOf(...entries: Entry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content = "", ...header } of entries) tar.entry(header, content);
  tar.finalize();
  return buffer(tar as unknown as AsyncIterable<Buffer>);
}

const good: Entry = { name: `${NAME}/SKILL.md`, content: skillText(NAME) };
export const HOSTILE_TARS: readonly { what: string; tar: () => Promise<Buffer>; path: string; reason: RegExp }[] = [
  {
    what: "a path that climbs out",
    tar: () => tarOf(good, { name: `${NAME}/../../evil` }),
    path: `${NAME}/../../evil`,
    reason: /leaves its folder/,
  },
  {
    what: "an absolute path",
    tar: () => tarOf(good, { name: "/etc/cron.d/evil" }),
    path: "/etc/cron.d/evil",
    reason: /absolute/,
  },
  {
    what: "a drive's path",
    tar: () => tarOf(good, { name: "C:/evil" }),
    path: "C:/evil",
    reason: /absolute/,
  },
  {
    what: "a file beside its folder",
    tar: () => tarOf(good, { name: "other/evil" }),
    path: "other/evil",
    reason: /outside of the tar's folder/,
  },
  {
    what: "a symbolic link",
    tar: () => tarOf(good, { name: `${NAME}/link`, type: "symlink", linkname: "/etc" }),
    path: `${NAME}/link`,
    reason: /is a symlink/,
  },
  {
    what: "a hard link",
    tar: () => tarOf(good, { name: `${NAME}/link`, type: "link", linkname: "/etc/passwd" }),
    path: `${NAME}/link`,
    reason: /is a link/,
  },
  {
    what: "a FIFO",
    tar: () => tarOf(good, { name: `${NAME}/pipe`, type: "fifo" }),
    path: `${NAME}/pipe`,
    reason: /is a fifo/,
  },
  {
    what: "a device",
    tar: () => tarOf(good, { name: `${NAME}/null`, type: "character-device" }),
    path: `${NAME}/null`,
    reason: /is a character-device/,
  },
  {
    what: "a name of 10,000 characters",
    tar: () => tarOf(good, { name: `${NAME}/${"n".repeat(10_000)}` }),
    path: `${NAME}/${"n".repeat(10_000)}`,
    reason: /longer than 255 bytes/,
  },
  {
    what: "a NUL in a long name",
    tar: () => tarOf(good, { name: `${NAME}/é`, pax: { path: `${NAME}/a\0b` } }),
    path: `${NAME}/a\0b`,
    reason: /NUL/,
  },
  {
    what: "the same file twice",
    tar: () => tarOf(good, { name: `${NAME}/a`, content: "1" }, { name: `${NAME}/a`, content: "2" }),
    path: "a",
    reason: /is there twice/,
  },
  {
    what: "a file where a folder was",
    tar: () => tarOf(good, { name: `${NAME}/a/b` }, { name: `${NAME}/a` }),
    path: "a",
    reason: /is a file and a folder/,
  },
  {
    what: "a header that promises 16 GiB",
    tar: async () => withSize(await tarOf(good, { name: `${NAME}/big`, content: "x" }), 16 * 1024 * MIB),
    path: "big",
    reason: /over 16777216 bytes/,
  },
  {
    what: "GNU's sparse file",
    tar: () => tarOf(good, { name: `${NAME}/sparse`, pax: { "GNU.sparse.realsize": String(16 * 1024 * MIB) } }),
    path: `${NAME}/sparse`,
    reason: /sparse/,
  },
  {
    what: "an end in the middle of a file",
    tar: async () => (await tarOf(good, { name: `${NAME}/cut`, content: Buffer.alloc(4096) })).subarray(0, 4000),
    path: `${NAME}/cut`,
    reason: /can't be read/,
  },
  {
    what: "an end between two files, where a copy of it was cut",
    tar: async () => (await tarOf(good, { name: `${NAME}/lost`, content: "x" })).subarray(0, 1024),
    path: "the tar",
    reason: /two empty blocks/,
  },
  {
    what: "a size below zero, so that what follows is no header",
    tar: async () => withSize(await tarOf(good, { name: `${NAME}/big`, content: "x" }), -1),
    path: `what follows ${NAME}/big`,
    reason: /can't be read/,
  },
  {
    what: "the root of a disk as a folder",
    tar: () => tarOf({ name: "/", type: "directory" }, good),
    path: "/",
    reason: /absolute/,
  },
  {
    what: "a long name that climbs out, as GNU writes it",
    tar: () => tarOf(good, { name: `${NAME}/${"deep/".repeat(40)}${"../".repeat(60)}evil` }),
    path: `${NAME}/${"deep/".repeat(40)}${"../".repeat(60)}evil`,
    reason: /leaves its folder/,
  },
  {
    what: "text that is no tar",
    tar: async () => Buffer.alloc(4096, "not a tar "),
    path: "the tar",
    reason: /can't be read/,
  },
  {
    what: "thousands of empty folders",
    tar: () =>
      tarOf(...Array.from({ length: 2000 }, (_, index) => ({ name: `${NAME}/d${index}`, type: "directory" as const }))),
    path: `${NAME}/d1024`,
    reason: /one of more than 1024/,
  },
  {
    what: "files that together take more than 16 MiB",
    tar: () =>
      tarOf(good, ...["a", "b"].map((name) => ({ name: `${NAME}/${name}`, content: Buffer.alloc(8.2 * MIB) }))),
    path: "b",
    reason: /over 16777216 bytes/,
  },
];

/** Rewrites the size in the header of the last entry, and the header's checksum. */
function withSize(tar: Buffer, size: number): Buffer {
  const at = tar.length - 1024 - 1024;
  const header = tar.subarray(at, at + 512);
  header.write(`${size.toString(8).padStart(11, "0")} `, 124, "latin1");
  header.fill(" ", 148, 156);
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return tar;
}
