import { buffer } from "node:stream/consumers";
import { extract, type Header, pack } from "tar-stream";
import { messageOf } from "../errors.js";
import { SkillRefused } from "./refused.js";
import { isScript, MAX_BYTES, MAX_FILES, type Skill, SkillIntake } from "./skill.js";

/** In bytes. */
const BLOCK = 512;
/** The largest pack of a skill that the limits allow: three blocks a file for headers and a long path, one of padding. */
export const MAX_PACK_BYTES = MAX_BYTES + (4 * BLOCK + 1024) * MAX_FILES + 2 * BLOCK;

/**
 * A skill as a tar, its files in a folder of its name. The bytes depend on the content alone: sorted paths, the epoch as
 * time, no owner. A file that begins with `#!` is executable.
 */
export async function packSkill(skill: Skill): Promise<Buffer> {
  const tar = pack();
  for (const [{ path, size }, bytes] of skill.contents()) {
    const mode = isScript(bytes) ? 0o755 : 0o644;
    tar.entry({ name: `${skill.name}/${path}`, size, mode, uid: 0, gid: 0, mtime: new Date(0) }, bytes);
  }
  tar.finalize();
  return buffer(tar);
}

/**
 * Reads a tar of one skill, whoever packed it. Holds nothing but regular files, and folders above them; anything else is
 * refused, throwing SkillRefused. Nothing is written anywhere.
 */
export async function unpackSkill(bytes: Buffer, origin: string): Promise<Skill> {
  const intake = new SkillIntake(origin);
  if (bytes.length > MAX_PACK_BYTES)
    throw intake.refuse("the tar", `has ${bytes.length} bytes, over ${MAX_PACK_BYTES}`);
  const entries = extract();
  entries.end(bytes);
  let folder: string | undefined;
  let at = "the tar";
  let headers = 0;
  try {
    for await (const entry of entries as AsyncIterable<unknown> as AsyncIterable<Entry>) {
      at = entry.header.name;
      headers += 1;
      if (headers > 2 * MAX_FILES) throw intake.refuse(at, `is one of more than ${2 * MAX_FILES} entries`);
      folder = await takeEntry(entry, intake, folder);
      at = `what follows ${entry.header.name}`;
    }
  } catch (thrown) {
    if (thrown instanceof SkillRefused) throw thrown;
    throw intake.refuse(at, `can't be read: ${messageOf(thrown)}`, {
      hint: "it has to be a tar that is not compressed",
      cause: thrown,
    });
  }
  // The library doesn't ask for it: without it a tar that was cut between two files would be a skill with fewer.
  if (!bytes.subarray(-2 * BLOCK).equals(Buffer.alloc(2 * BLOCK))) {
    throw intake.refuse("the tar", "lacks the two empty blocks at its end: it was cut");
  }
  return intake.finish(folder);
}

/** An entry as the library gives it; its own types don't say that it can be iterated. */
type Entry = AsyncIterable<Buffer> & { header: Header; resume(): unknown };

/** Takes one entry in and answers the folder that all of them lie in. */
async function takeEntry(entry: Entry, intake: SkillIntake, folder: string | undefined): Promise<string> {
  const { header } = entry;
  const found = header.name;
  checkKind(header, intake);
  const isFolder = header.type === "directory";
  const path = found.replace(/^(\.\/)+/, "");
  // The root of a disk stays what it is.
  const whole = isFolder ? path.replace(/(?<=.)\/$/, "") : path;
  if (isFolder && (whole === "" || whole === ".")) {
    entry.resume();
    return folder as string;
  }
  intake.checkPath(whole);
  const [top, ...rest] = whole.split("/") as [string, ...string[]];
  if (folder !== undefined && top !== folder) throw intake.refuse(found, `lies outside of the tar's folder ${folder}`);
  if (isFolder) {
    entry.resume();
    return top;
  }
  if (rest.length === 0) throw intake.refuse(found, "lies in no folder; a skill's tar holds one");
  const admitted = intake.admit(rest.join("/"), header.size);
  intake.put(admitted, await buffer(entry));
  return top;
}

function checkKind({ name, type, pax }: Header, intake: SkillIntake): void {
  if (type !== "file" && type !== "directory") {
    // The library knows no name for a kind that it doesn't know, such as GNU's sparse file.
    throw intake.refuse(name, `is ${type ? `a ${type}` : "of a kind that no skill holds"}`);
  }
  if (name.includes("\u{fffd}")) throw intake.refuse(name, "has a name that is not UTF-8");
  const sparse = Object.keys(pax ?? {}).some((key) => key.startsWith("GNU.sparse"));
  if (sparse) throw intake.refuse(name, "is a sparse file");
}
