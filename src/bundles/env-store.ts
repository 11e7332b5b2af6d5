import { hash } from "node:crypto";
import type { PinnedProgram } from "../computer/installer.js";
import { SetupError } from "../errors.js";
import { canonicalJson } from "../protocol/canonical-json.js";
import type { Skill } from "../skills/skill.js";
import { SkillStore } from "../skills/skill-store.js";
import { inParallel, type ObjectStore, objectsBelow, undamaged } from "../stores/object-store.js";
import { envIntake } from "./env-content.js";
import { EnvRecord, idOf, recordText, ValidatedBoot } from "./env-record.js";
import { getProgram, putProgram } from "./program-store.js";

/** Each record lies below this and its id in hex, with the boots that proved it. */
export const ENVS_PREFIX = "agentenv-envs/";
/** Files of envs, each under its own digest, whichever records have it. */
export const FILES_PREFIX = "agentenv-env-files/";
const RECORD = "record.json";
const BOOTS = "boots/";
/** 5,000 files with long paths, and a card. */
const MAX_RECORD = 64 * 1024 * 1024;
const MAX_BOOT = 4 * 1024 * 1024;
const MAX_LISTED = 10;

/** Something of a record that isn't as the record says. */
export interface RecordFault {
  /** The object's key in the store. */
  readonly object: string;
  /** The file of the env that it is, where it is one. */
  readonly path?: string;
  readonly fault: "tampered" | "missing";
}

/** A stored record that is not what its id says. Nothing of it was used. */
export class RecordDamaged extends SetupError {
  constructor(
    readonly id: string,
    readonly faults: readonly RecordFault[],
    store: string,
  ) {
    const named = faults.map(({ object, path, fault }) =>
      path === undefined ? `${object} is ${fault}` : `${path} (${object}) is ${fault}`,
    );
    const more = named.length > MAX_LISTED ? `, and ${named.length - MAX_LISTED} more` : "";
    super(`the env ${id} in ${store} is damaged: ${named.slice(0, MAX_LISTED).join(", ")}${more}`, {
      hint: "agentenv put --rewrite, with the env's bundle, puts it right",
    });
  }
}

/** An env that was proven, with all that its record needs. */
export interface ProvenEnv {
  readonly record: EnvRecord;
  /** The env's files by path: what the record lists. */
  readonly contents: ReadonlyMap<string, Buffer>;
  /** Those that the record names. */
  readonly skills: readonly Skill[];
  readonly boot: ValidatedBoot;
  /** The driver's program on the machine of the boot. */
  readonly program?: PinnedProgram & { readonly bytes: Buffer };
}

/** A record, with everything that it needs but the driver's program, every byte of it checked. */
export interface StoredEnv extends Omit<ProvenEnv, "program"> {
  readonly id: string;
}

export interface ListedEnv {
  readonly id: string;
  /** Undefined where the record is damaged. */
  readonly record: EnvRecord | undefined;
  readonly added: Date;
}

/**
 * Records of envs in an object store. Files, skills, the driver's program and the boot are put first and the record last, so
 * a reader finds all of an env or nothing. A record is the text that its id is made of, and every other object lies under its
 * own digest: nothing that is read has to be believed. Putting the same content again leaves the first boot as the one that
 * proved it.
 */
export class EnvStore {
  readonly #skills: SkillStore;

  constructor(private readonly store: ObjectStore) {
    this.#skills = new SkillStore(store);
  }

  /** Stores an env, once for the same content; with `rewrite` every object again, to mend what was damaged. */
  async put(env: ProvenEnv, { rewrite = false } = {}): Promise<{ id: string; added: boolean }> {
    const { record, contents, skills, boot, program } = env;
    const id = idOf(record);
    const folder = folderOf(id);
    const files = new Map(record.files.map(({ path, size, sha256 }) => [sha256, { path, size }]));
    await inParallel(this.store, [...files], async ([sha256, { path, size }]) => {
      const key = FILES_PREFIX + sha256;
      if (!rewrite && (await this.store.head(key))?.size === size) return;
      await this.store.put(key, contents.get(path) as Buffer);
    });
    for (const skill of skills) await this.#skills.add(skill, { rewrite });
    if (program !== undefined) await putProgram(this.store, program, program.bytes, rewrite);
    if ((await this.#boot(folder)).boot === undefined) {
      const bytes = Buffer.from(canonicalJson(ValidatedBoot.parse(boot)));
      await this.store.put(`${folder}${BOOTS}${hash("sha256", bytes, "hex")}.json`, bytes);
    }
    const text = Buffer.from(recordText(record));
    const there = await undamaged(this.store, folder + RECORD, MAX_RECORD);
    if (Buffer.isBuffer(there) && there.equals(text)) return { id, added: false };
    await this.store.put(folder + RECORD, text);
    return { id, added: true };
  }

  /** The id that a digest, or the beginning of exactly one, means. Throws a SetupError. */
  async find(given: string): Promise<string> {
    const [, prefix] = /^(?:sha256:)?([0-9a-f]{4,64})$/.exec(given) ?? [];
    if (prefix === undefined) {
      throw new SetupError(`${JSON.stringify(given.slice(0, 100))} is no id of an env`, {
        hint: "it is sha256: and 64 hexadecimal digits, as agentenv put prints it, or at least the first 4 of them",
      });
    }
    const found = await this.#ids(prefix);
    const [id] = found.keys();
    if (id !== undefined && found.size === 1) return id;
    if (id === undefined) {
      throw new SetupError(`${this.store.url} has no env ${given}`, { hint: "agentenv envs list shows what is there" });
    }
    throw new SetupError(`${given} is the beginning of ${found.size} envs in ${this.store.url}`, {
      hint: `say more of it: ${[...found.keys()].slice(0, MAX_LISTED).join(", ")}`,
    });
  }

  /** The record with this id. Throws a SetupError where there is none, RecordDamaged. */
  async record(id: string): Promise<EnvRecord> {
    const object = folderOf(id) + RECORD;
    const bytes = await undamaged(this.store, object, MAX_RECORD);
    if (bytes === undefined) {
      throw new SetupError(`${this.store.url} has no env ${id}`, { hint: "agentenv envs list shows what is there" });
    }
    const record = readRecord(bytes, id);
    if (record === undefined) throw new RecordDamaged(id, [{ object, fault: "tampered" }], this.store.url);
    return record;
  }

  /** The boot that a record was proven by. Throws RecordDamaged where none is whole. */
  async boot(id: string): Promise<ValidatedBoot> {
    const { boot, fault } = await this.#boot(folderOf(id));
    if (boot !== undefined) return boot;
    throw new RecordDamaged(id, [fault], this.store.url);
  }

  /** A record and all that belongs to it, every byte checked. Throws a SetupError where there is none, RecordDamaged, BundleDamaged. */
  async get(id: string): Promise<StoredEnv> {
    const record = await this.record(id);
    // Its paths are written to a disk, and its sizes are held in memory: a record that anybody made is held to put's rules.
    const intake = envIntake(`${id} in ${this.store.url}`);
    for (const { path, size } of record.files) intake.admit(path, size);
    const faults: RecordFault[] = [];
    const contents = new Map<string, Buffer>();
    await inParallel(this.store, record.files, async ({ path, size, sha256 }) => {
      const object = FILES_PREFIX + sha256;
      const bytes = await undamaged(this.store, object, size);
      if (bytes === undefined) faults.push({ object, path, fault: "missing" });
      else if (bytes === "tampered" || hash("sha256", bytes, "hex") !== sha256) {
        faults.push({ object, path, fault: "tampered" });
      } else contents.set(path, bytes);
    });
    const { boot, fault } = await this.#boot(folderOf(id));
    if (boot === undefined) faults.push(fault);
    if (boot === undefined || faults.length > 0) throw new RecordDamaged(id, faults, this.store.url);
    const skills = await Promise.all(record.skills.map(({ digest }) => this.#skills.get(digest)));
    return { id, record, contents, skills, boot };
  }

  /** The program of a driver, undefined where the store has none. Throws RecordDamaged. */
  async program(id: string, pinned: PinnedProgram): Promise<Buffer | undefined> {
    const found = await getProgram(this.store, pinned);
    if (found === undefined || Buffer.isBuffer(found)) return found;
    throw new RecordDamaged(id, found, this.store.url);
  }

  /** Every record, by id. */
  async list(): Promise<ListedEnv[]> {
    const found: ListedEnv[] = [];
    await inParallel(this.store, [...(await this.#ids(""))], async ([id, added]) => {
      const bytes = await undamaged(this.store, folderOf(id) + RECORD, MAX_RECORD);
      // Deleted since it was listed.
      if (bytes !== undefined) found.push({ id, record: readRecord(bytes, id), added });
    });
    return found.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** The digests of the skills that stored envs have. Throws RecordDamaged for a record that doesn't tell. */
  async neededSkills(): Promise<Set<string>> {
    const needed = new Set<string>();
    for (const { id, record } of await this.list()) {
      if (record === undefined) {
        throw new RecordDamaged(id, [{ object: folderOf(id) + RECORD, fault: "tampered" }], this.store.url);
      }
      for (const { digest } of record.skills) needed.add(digest);
    }
    return needed;
  }

  /** The ids of the records that begin so, and when each was put. */
  async #ids(prefix: string): Promise<Map<string, Date>> {
    const found = new Map<string, Date>();
    for await (const { key, modified } of objectsBelow(this.store, ENVS_PREFIX + prefix)) {
      const [, hex] = /^([0-9a-f]{64})\/record\.json$/.exec(key.slice(ENVS_PREFIX.length)) ?? [];
      if (hex !== undefined) found.set(`sha256:${hex}`, modified);
    }
    return found;
  }

  /** The earliest boot that is whole. */
  async #boot(folder: string): Promise<{ boot?: ValidatedBoot; fault: RecordFault }> {
    let fault: RecordFault = { object: folder + BOOTS, fault: "missing" };
    const boots: ValidatedBoot[] = [];
    for await (const { key } of objectsBelow(this.store, folder + BOOTS)) {
      const bytes = await undamaged(this.store, key, MAX_BOOT);
      const boot = Buffer.isBuffer(bytes) ? readBoot(bytes, key.slice((folder + BOOTS).length)) : undefined;
      if (boot !== undefined) boots.push(boot);
      else fault = { object: key, fault: "tampered" };
    }
    const [boot] = boots.sort((a, b) => (a.at < b.at ? -1 : 1));
    return { fault, ...(boot === undefined ? {} : { boot }) };
  }
}

function folderOf(id: string): string {
  return `${ENVS_PREFIX}${id.replace(/^sha256:/, "")}/`;
}

/** Undefined for what is not the record with this id. */
function readRecord(bytes: Buffer | "tampered", id: string): EnvRecord | undefined {
  if (bytes === "tampered" || `sha256:${hash("sha256", bytes, "hex")}` !== id) return undefined;
  const { success, data } = EnvRecord.safeParse(JSON.parse(bytes.toString("utf8")));
  if (success) return data;
  throw new SetupError(`the env ${id} is a record of a kind that this agentenv doesn't know`, {
    hint: "a newer agentenv may have put it",
  });
}

function readBoot(bytes: Buffer, name: string): ValidatedBoot | undefined {
  if (name !== `${hash("sha256", bytes, "hex")}.json`) return undefined;
  return ValidatedBoot.safeParse(JSON.parse(bytes.toString("utf8"))).data;
}
