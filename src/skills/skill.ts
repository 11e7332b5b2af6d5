import { hash } from "node:crypto";
import { z } from "zod";
import { canonicalJson } from "../protocol/canonical-json.js";
import { FileIntake } from "./file-intake.js";
import { type Frontmatter, readFrontmatter } from "./frontmatter.js";
import { SkillRefused, shownPath } from "./refused.js";

export const MAX_FILES = 512;
export const MAX_BYTES = 16 * 1024 * 1024;
export const SKILL_FILE = "SKILL.md";

/** One file as a skill's list names it: its path in Unicode form C with `/`, its size in bytes, its digest in hex. */
export const SkillFile = z.strictObject({
  path: z.string(),
  size: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type SkillFile = z.infer<typeof SkillFile>;

/** A skill with all its bytes, known to keep the rules. Made by a SkillIntake. */
export class Skill {
  readonly name: string;
  readonly description: string;
  /** Sorted by path, compared by UTF-16 code units. */
  readonly files: readonly SkillFile[];
  /** `sha256:<hex>` of the file list's canonical JSON: the same for the same content, wherever it lies. */
  readonly digest: string;
  readonly #contents: ReadonlyMap<string, Buffer>;

  constructor(
    readonly frontmatter: Frontmatter,
    /** SKILL.md as it is, its frontmatter included. */
    readonly text: string,
    contents: ReadonlyMap<string, Buffer>,
  ) {
    this.name = frontmatter.name;
    this.description = frontmatter.description;
    this.#contents = contents;
    this.files = fileList(contents);
    this.digest = digestOf(this.files);
  }

  /** The file's bytes, undefined where the skill has no such file. Not to be written to. */
  bytes(path: string): Buffer | undefined {
    return this.#contents.get(path);
  }

  /** Path and bytes of every file, in the list's order. */
  *contents(): Generator<[SkillFile, Buffer]> {
    for (const file of this.files) yield [file, this.#contents.get(file.path) ?? Buffer.alloc(0)];
  }
}

/** Contents by path as a list, sorted by path, compared by UTF-16 code units. */
export function fileList(contents: ReadonlyMap<string, Buffer>): SkillFile[] {
  return [...contents]
    .map(([path, bytes]) => ({ path, size: bytes.length, sha256: hash("sha256", bytes, "hex") }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The text that a skill's digest is made of, and that an object store keeps as the skill's manifest. */
export function manifestOf(files: readonly SkillFile[]): string {
  return canonicalJson(files);
}

export function digestOf(files: readonly SkillFile[]): string {
  return `sha256:${hash("sha256", manifestOf(files), "hex")}`;
}

/** Whether a file written out is to be executable: the bit isn't kept, since not every file system has it. */
export function isScript(bytes: Buffer): boolean {
  return bytes.subarray(0, 2).toString("latin1") === "#!";
}

/** Takes in the files of one skill, whatever they come from, and refuses what no skill may hold. */
export class SkillIntake extends FileIntake {
  constructor(origin: string) {
    super(origin, { files: MAX_FILES, bytes: MAX_BYTES }, "skill");
  }

  override refuse(path: string, reason: string, options: { hint?: string; cause?: unknown } = {}): SkillRefused {
    return new SkillRefused(this.origin, path, reason, options);
  }

  /** The skill, once every file was put. `name` is what it comes as: its folder's name, where it has one. */
  finish(name?: string): Skill {
    const bytes = this.contents.get(SKILL_FILE);
    if (bytes === undefined) {
      throw this.refuse(SKILL_FILE, "is missing", { hint: "a skill is a folder with a file SKILL.md" });
    }
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (cause) {
      throw this.refuse(SKILL_FILE, "is not UTF-8", { cause });
    }
    const { frontmatter } = readFrontmatter(text, this.origin);
    if (name !== undefined && name !== frontmatter.name) {
      throw this.refuse(SKILL_FILE, `names the skill "${frontmatter.name}", but it comes as "${shownPath(name)}"`, {
        hint: "a skill's name and its folder's are the same",
      });
    }
    return new Skill(frontmatter, text, this.contents);
  }
}
