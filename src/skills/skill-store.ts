import { hash } from "node:crypto";
import { z } from "zod";
import { SetupError } from "../errors.js";
import { inParallel, type ObjectInfo, type ObjectStore, objectsBelow, undamaged } from "../stores/object-store.js";
import { readFrontmatter } from "./frontmatter.js";
import { SkillRefused, shownPath } from "./refused.js";
import { MAX_BYTES, MAX_FILES, manifestOf, SKILL_FILE, type Skill, SkillFile, SkillIntake } from "./skill.js";

/** Each bundle lies below this and its digest in hex: files under their own digests, and the manifest. */
export const SKILLS_PREFIX = "agentenv-env-skills/";
const MANIFEST = "manifest.json";
/** What 512 files with the longest paths take, every character of them escaped. */
const MAX_MANIFEST = MAX_FILES * 8 * 1024;
/** A bundle without a manifest may be one that somebody is adding right now. */
const UNFINISHED_MS = 60 * 60 * 1000;
/** Something may delete files while an add puts them: so often it looks whether all are there, and puts those that aren't. */
const ROUNDS = 3;

/** Somebody may have put any number of objects into a bundle's folder. */
const MAX_FAULTS = 2 * MAX_FILES;

const Manifest = z.array(SkillFile).min(1).max(MAX_FILES);

/** One thing that is wrong with a stored bundle. `path` is a file of the skill, else the key below the bundle. */
export interface BundleFault {
  readonly path: string;
  readonly fault: "tampered" | "missing" | "added";
}

/** A stored bundle that is not what its digest says. */
export class BundleDamaged extends SetupError {
  constructor(
    readonly digest: string,
    readonly faults: readonly BundleFault[],
    store: string,
  ) {
    const named = faults.map(({ path, fault }) => `${shownPath(path)} is ${fault}`);
    super(`the skill ${digest} in ${store} is damaged: ${named.slice(0, 20).join(", ")}`, {
      hint: "agentenv skills add --rewrite, with the skill's folder, puts it right; an added object has to be deleted",
    });
  }
}

export interface StoredSkill {
  readonly digest: string;
  /** Undefined where the bundle is damaged: `verify` says how. */
  readonly name: string | undefined;
  readonly files: number;
  readonly bytes: number;
  readonly added: Date;
}

export interface AddOptions {
  /** Put every file even if the store has the bundle already. */
  rewrite?: boolean;
  /** Told how many of how many files were put. */
  onProgress?: (done: number, total: number) => void;
}

/** What became of each digest in a store. */
export interface Collected {
  readonly removed: string[];
  readonly kept: string[];
  /** Kept as well, because something else in the store needs them. */
  readonly needed: string[];
  /** May be being added right now. */
  readonly unfinished: string[];
}

/**
 * Skills in an object store. A bundle's files are put first and its manifest last, so a reader finds all of it or nothing.
 * The manifest is the text that the digest is made of: nothing in a bundle has to be believed.
 */
export class SkillStore {
  constructor(private readonly store: ObjectStore) {}

  /**
   * Stores a skill, once for the same content. Known content costs two requests whatever its size: the list of its objects
   * and the manifest. What an add left behind that didn't finish is completed.
   */
  async add(skill: Skill, { rewrite = false, onProgress }: AddOptions = {}): Promise<{ added: boolean }> {
    const folder = folderOf(skill.digest);
    const manifest = Buffer.from(manifestOf(skill.files));
    const contents = new Map([...skill.contents()].map(([file, bytes]) => [file.sha256, bytes]));
    let absent = rewrite ? [...contents.keys()] : await this.#absent(folder, contents);
    if (absent.length === 0) {
      const there = await undamaged(this.store, folder + MANIFEST, MAX_MANIFEST);
      if (Buffer.isBuffer(there) && there.equals(manifest)) return { added: false };
    }
    let done = 0;
    const total = absent.length;
    for (let round = 1; absent.length > 0; round += 1) {
      if (round > ROUNDS) {
        throw new SetupError(`files of ${skill.digest} don't stay in ${this.store.url}`, {
          hint: "is something deleting them, such as a gc? Add the skill again when it has ended",
        });
      }
      await inParallel(this.store, absent, async (sha256) => {
        await this.store.put(folder + sha256, contents.get(sha256) ?? Buffer.alloc(0));
        done += 1;
        onProgress?.(Math.min(done, total), total);
      });
      absent = await this.#absent(folder, contents);
    }
    await this.store.put(folder + MANIFEST, manifest);
    return { added: true };
  }

  /** The skill with this digest, every byte of it checked. Throws SetupError where there is none, BundleDamaged. */
  async get(digest: string, onProgress?: AddOptions["onProgress"]): Promise<Skill> {
    const { files, contents, faults } = await this.#read(digest, onProgress);
    if (faults.length > 0) throw new BundleDamaged(digest, faults, this.store.url);
    const intake = new SkillIntake(`${digest} in ${this.store.url}`);
    for (const { path, size, sha256 } of files) intake.put(intake.admit(path, size), contents.get(sha256) as Buffer);
    return intake.finish();
  }

  /** What is wrong with a bundle; empty where nothing is. Throws SetupError where there is none. */
  async verify(digest: string, onProgress?: AddOptions["onProgress"]): Promise<readonly BundleFault[]> {
    return (await this.#read(digest, onProgress)).faults;
  }

  /** Every whole bundle, by digest. */
  async list(): Promise<StoredSkill[]> {
    const found: StoredSkill[] = [];
    const whole = [...(await this.#bundles())].filter(([, objects]) => manifestIn(objects) !== undefined);
    await inParallel(this.store, whole, async ([digest, objects]) => {
      const added = manifestIn(objects)?.modified ?? new Date(0);
      const files = await this.#manifest(digest);
      // Deleted since it was listed.
      if (files === undefined) return;
      const bytes = files === "tampered" ? 0 : files.reduce((sum, { size }) => sum + size, 0);
      const count = files === "tampered" ? 0 : files.length;
      const name = files === "tampered" ? undefined : await this.#name(digest, files);
      if (name === undefined && (await this.#isGone(digest))) return;
      found.push({ digest, name, files: count, bytes, added });
    });
    return found.sort((a, b) => (a.digest < b.digest ? -1 : 1));
  }

  /**
   * Deletes every bundle but those to keep and those that something else in the store needs, each manifest first, and what
   * adds left behind that never finished; an unfinished one less than an hour old stays. Content that is added while it is
   * being deleted has to be added again, so this is not for the time in which others add. Throws SetupError, and deletes
   * nothing, where one to keep isn't there.
   */
  async gc(keep: readonly string[], needed: ReadonlySet<string> = new Set()): Promise<Collected> {
    const bundles = await this.#bundles();
    const unknown = keep.filter((digest) => manifestIn(bundles.get(digest) ?? []) === undefined);
    if (unknown.length > 0) {
      throw new SetupError(`${this.store.url} has no skill ${unknown.join(", ")}: nothing was removed`, {
        hint: "agentenv skills list shows what is there",
      });
    }
    const result: Collected = { removed: [], kept: [], needed: [], unfinished: [] };
    for (const [digest, objects] of bundles) {
      const manifest = manifestIn(objects);
      const youngest = Math.max(...objects.map(({ modified }) => modified.getTime()));
      if (keep.includes(digest)) result.kept.push(digest);
      else if (needed.has(digest)) result.needed.push(digest);
      else if (manifest === undefined && Date.now() - youngest < UNFINISHED_MS) result.unfinished.push(digest);
      else {
        if (manifest !== undefined) await this.store.delete(manifest.key);
        const files = objects.filter((each) => each !== manifest);
        await inParallel(this.store, files, ({ key }) => this.store.delete(key));
        result.removed.push(digest);
      }
    }
    return result;
  }

  /** Which of these contents the bundle's folder doesn't hold in the right size. */
  async #absent(folder: string, contents: ReadonlyMap<string, Buffer>): Promise<string[]> {
    const sizes = new Map<string, number>();
    for await (const { key, size } of objectsBelow(this.store, folder)) sizes.set(key.slice(folder.length), size);
    return [...contents].filter(([sha256, bytes]) => sizes.get(sha256) !== bytes.length).map(([sha256]) => sha256);
  }

  async #read(digest: string, onProgress: AddOptions["onProgress"]) {
    const folder = folderOf(digest);
    const files = await this.#manifest(digest);
    if (files === undefined) throw this.#absence(digest);
    const contents = new Map<string, Buffer>();
    const faults: BundleFault[] = [];
    if (files === "tampered") return { files: [], contents, faults: [{ path: MANIFEST, fault: "tampered" } as const] };
    const wanted = new Map<string, SkillFile[]>();
    for (const file of files) append(wanted, file.sha256, file);
    let done = 0;
    await inParallel(this.store, [...wanted], async ([sha256, named]) => {
      const bytes = await undamaged(this.store, folder + sha256, Math.max(...named.map(({ size }) => size)));
      const right = Buffer.isBuffer(bytes) && hash("sha256", bytes, "hex") === sha256;
      for (const { path, size } of named) {
        if (bytes === undefined) faults.push({ path, fault: "missing" });
        else if (!right || bytes.length !== size) faults.push({ path, fault: "tampered" });
      }
      if (right) contents.set(sha256, bytes);
      done += 1;
      onProgress?.(done, wanted.size);
    });
    for await (const { key } of objectsBelow(this.store, folder)) {
      const name = key.slice(folder.length);
      if (name !== MANIFEST && !wanted.has(name)) faults.push({ path: name, fault: "added" });
      if (faults.length > MAX_FAULTS) break;
    }
    if (faults.some(({ fault }) => fault === "missing") && (await this.#isGone(digest))) throw this.#absence(digest);
    return { files, contents, faults };
  }

  /** Whether a bundle was deleted while it was read: its manifest goes first. */
  async #isGone(digest: string): Promise<boolean> {
    return (await this.store.head(folderOf(digest) + MANIFEST)) === undefined;
  }

  #absence(digest: string): SetupError {
    return new SetupError(`${this.store.url} has no skill ${digest}`, {
      hint: "agentenv skills list shows what is there",
    });
  }

  /** The file list of a bundle, undefined where there is no bundle. */
  async #manifest(digest: string): Promise<SkillFile[] | "tampered" | undefined> {
    const bytes = await undamaged(this.store, folderOf(digest) + MANIFEST, MAX_MANIFEST);
    if (bytes === undefined || bytes === "tampered") return bytes;
    if (`sha256:${hash("sha256", bytes, "hex")}` !== digest) return "tampered";
    const parsed = Manifest.safeParse(JSON.parse(bytes.toString("utf8")));
    const total = parsed.data?.reduce((sum, { size }) => sum + size, 0) ?? Number.POSITIVE_INFINITY;
    return parsed.success && total <= MAX_BYTES ? parsed.data : "tampered";
  }

  async #name(digest: string, files: readonly SkillFile[]): Promise<string | undefined> {
    const file = files.find(({ path }) => path === SKILL_FILE);
    const bytes = file && (await undamaged(this.store, folderOf(digest) + file.sha256, file.size));
    if (!Buffer.isBuffer(bytes) || hash("sha256", bytes, "hex") !== file?.sha256) return undefined;
    try {
      return readFrontmatter(bytes.toString("utf8"), digest).frontmatter.name;
    } catch (thrown) {
      if (thrown instanceof SkillRefused) return undefined;
      throw thrown;
    }
  }

  /** What lies below each digest, finished or not. */
  async #bundles(): Promise<Map<string, ObjectInfo[]>> {
    const bundles = new Map<string, ObjectInfo[]>();
    for await (const object of objectsBelow(this.store, SKILLS_PREFIX)) {
      const [, hex] = /^([0-9a-f]{64})\//.exec(object.key.slice(SKILLS_PREFIX.length)) ?? [];
      if (hex === undefined) continue;
      append(bundles, `sha256:${hex}`, object);
    }
    return bundles;
  }
}

function append<V>(lists: Map<string, V[]>, key: string, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function folderOf(digest: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? [];
  if (hex === undefined) {
    throw new SetupError(`${JSON.stringify(digest.slice(0, 100))} is no digest of a skill`, {
      hint: "it is sha256: and 64 hexadecimal digits, as agentenv skills add prints it",
    });
  }
  return `${SKILLS_PREFIX}${hex}/`;
}

function manifestIn(objects: readonly ObjectInfo[]): ObjectInfo | undefined {
  return objects.find(({ key }) => key.endsWith(`/${MANIFEST}`));
}
