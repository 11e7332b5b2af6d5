import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { PinnedProgram } from "../computer/installer.js";
import { messageOf, SetupError } from "../errors.js";
import { inParallel, type ObjectStore, undamaged } from "../stores/object-store.js";

/** Programs of drivers, each below its own digest, in pieces: a store that is slow takes each within its deadline. */
const PROGRAMS_PREFIX = "agentenv-env-programs/";
const PIECE = 8 * 1024 * 1024;

/** A program that is in a store in part, or is not what its digest says. */
export interface ProgramFault {
  readonly object: string;
  readonly fault: "tampered" | "missing";
}

function piecesOf({ size, sha256 }: PinnedProgram): { key: string; start: number; end: number }[] {
  return Array.from({ length: Math.ceil(size / PIECE) }, (_, index) => ({
    key: `${PROGRAMS_PREFIX}${sha256}/${String(index).padStart(4, "0")}`,
    start: index * PIECE,
    end: Math.min(size, (index + 1) * PIECE),
  }));
}

/** Puts the pieces that aren't there in the right size; all of them with `rewrite`. `bytes` are what the digest says. */
export async function putProgram(
  store: ObjectStore,
  program: PinnedProgram,
  bytes: Buffer,
  rewrite: boolean,
): Promise<void> {
  await inParallel(store, piecesOf(program), async ({ key, start, end }) => {
    if (!rewrite && (await store.head(key))?.size === end - start) return;
    await store.put(key, bytes.subarray(start, end));
  });
}

/** The program, checked against its digest; undefined where the store has nothing of it, else what is wrong with it. */
export async function getProgram(
  store: ObjectStore,
  program: PinnedProgram,
): Promise<Buffer | readonly ProgramFault[] | undefined> {
  const pieces = piecesOf(program);
  const faults: ProgramFault[] = [];
  const whole = Buffer.alloc(program.size);
  await inParallel(store, pieces, async ({ key, start, end }) => {
    const bytes = await undamaged(store, key, end - start);
    if (Buffer.isBuffer(bytes) && bytes.length === end - start) bytes.copy(whole, start);
    else faults.push({ object: key, fault: bytes === undefined ? "missing" : "tampered" });
  });
  const missing = faults.filter(({ fault }) => fault === "missing");
  if (missing.length === pieces.length) return undefined;
  if (faults.length > 0) return faults;
  if (hash("sha256", whole, "hex") === program.sha256) return whole;
  return [{ object: `${PROGRAMS_PREFIX}${program.sha256}`, fault: "tampered" }];
}

/** A program as it is installed on this machine. Throws a SetupError where that is not what is pinned. */
export async function readProgram(program: PinnedProgram, file: string): Promise<Buffer> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new SetupError(`${file} can't be read: ${messageOf(cause)}`, { cause });
  });
  if (bytes.length === program.size && hash("sha256", bytes, "hex") === program.sha256) return bytes;
  throw new SetupError(`${file} is not the program that is pinned`, { hint: "agentenv driver install puts it right" });
}
