import { constants, createReadStream } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Dispatcher } from "undici";
import { AgentEnvError } from "../errors.js";
import { DATA_OBJECTS_URN, type FilePart } from "../protocol/data-plane.js";
import { decodeBase64 } from "./base64.js";
import { anyHttps } from "./public-internet.js";
import { describeIssues } from "./schema.js";
import { download, downloadGranted, MAX_URL_BYTES, ReadGrant } from "./transfers.js";

/** From where a file part's bytes may be had. */
export interface PartBytesOptions {
  /** Folders in which `file:` URIs may lie, where an orchestrator stages files beside the server. Default: none. */
  stagedFolders?: readonly string[];
  /** Lets an https URI lead to private addresses. Default false. */
  allowPrivate?: boolean;
  /** The most that a URI may bring, in bytes. Default 1 GiB; a read grant says its own limit. */
  maxBytes?: number;
  /** Makes the connections, in the place of our own: for a proxy. What it reaches is its to decide. */
  dispatcher?: Dispatcher;
}

/**
 * The bytes of a file part, wherever they are: in it, at an https URI, in a staged file, or behind the read grant that its
 * metadata holds. Throws `invalid_argument` for a URI that is refused, `limit_exceeded` for a file that is too large, and
 * `internal` for one that can't be had.
 */
export async function* partBytes(part: FilePart, options: PartBytesOptions = {}): AsyncGenerator<Buffer> {
  const { file, metadata } = part;
  const {
    maxBytes = MAX_URL_BYTES,
    allowPrivate = false,
    dispatcher = allowPrivate ? anyHttps() : undefined,
  } = options;
  const { read } = (metadata?.[DATA_OBJECTS_URN] ?? {}) as { read?: unknown };
  if (read !== undefined) {
    const grant = ReadGrant.safeParse(read);
    if (!grant.success) {
      // The fields alone: their values are what lets the holder in.
      const fields = describeIssues(grant.error).replaceAll(/:[^;]*/g, "");
      throw new AgentEnvError("invalid_argument", `the read grant is none: ${fields}`);
    }
    yield* downloadGranted(grant.data, dispatcher);
  } else if ("bytes" in file) {
    yield* decodeBase64(file.bytes);
  } else if (file.uri.startsWith("file:")) {
    yield* stagedBytes(file.uri, options.stagedFolders ?? [], maxBytes);
  } else {
    yield* download(file.uri, dispatcher, maxBytes);
  }
}

/** A regular file that lies in one of the folders, whichever links lead to it. */
async function* stagedBytes(uri: string, folders: readonly string[], maxBytes: number): AsyncGenerator<Buffer> {
  const refused = (cause?: unknown) =>
    new AgentEnvError("invalid_argument", "the file's uri is no file in a folder for staged files", {
      hint: folders.length === 0 ? "this environment takes no file: URIs" : "stage it there, or send its bytes",
      cause,
    });
  let path: string;
  try {
    path = await realpath(fileURLToPath(uri));
  } catch (thrown) {
    throw refused(thrown);
  }
  const real = await Promise.all(folders.map((folder) => realpath(folder)));
  if (!real.some((folder) => path.startsWith(folder + sep))) throw refused();
  // Neither a link that was put there since, nor a pipe that nobody writes to.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw refused();
    if (stat.size > maxBytes) throw new AgentEnvError("limit_exceeded", `the file is larger than ${maxBytes} bytes`);
    // A file that grows meanwhile brings no more than it had.
    if (stat.size > 0) yield* createReadStream(path, { fd: handle, autoClose: false, end: stat.size - 1 });
  } finally {
    await handle.close();
  }
}
