import { basename } from "node:path";
import { decodeBase64 } from "../environment/base64.js";
import { describeIssues } from "../environment/schema.js";
import { download, downloadGranted, GrantedUpload, ReadGrant, WriteGrant } from "../environment/transfers.js";
import { AgentEnvError } from "../errors.js";
import {
  DATA_OBJECTS_URN,
  type FilePart,
  type GetDataParams,
  type Part,
  RelativePath,
} from "../protocol/data-plane.js";
import { type FoundFile, findHomeFiles, type HomeFile, openHomeFile, writeHomeFiles } from "./home-files.js";
import type { SessionUser } from "./session.js";

/** An answer is one JSON text, and the engine's longest string holds 512 MiB. */
const MAX_ANSWER_BYTES = 256 << 20;
const MAX_ANSWER_FILES = 100_000;

/** The data plane of a computer: files into the session user's home, and the env's data paths out of it. */
export class DataPlane {
  constructor(
    private readonly user: SessionUser,
    private readonly dataPaths: () => readonly string[],
  ) {}

  /**
   * Writes the parts' files below the home, each at the path that its metadata names, each whole or not at all. Throws
   * `invalid_argument` for a part that is no file, names no path or leads out of the home.
   */
  async add(parts: readonly Part[]): Promise<void> {
    // Everything that can be refused by looking is refused before anything is fetched.
    const files = parts.map((part): HomeFile => {
      const { file, path, read } = markedFile(part);
      return { path, bytes: read === undefined ? bytesOf(file) : downloadGranted(read) };
    });
    await writeHomeFiles(this.user.home, files);
  }

  /**
   * The files of the data paths, in the answer, or uploaded where a grant was given. Throws `limit_exceeded` where they are
   * more than an answer holds, or a grant allows.
   */
  async get({ write_namespace: namespace }: GetDataParams): Promise<Part[]> {
    const files = await findHomeFiles(this.user.home, this.dataPaths(), MAX_ANSWER_FILES);
    return namespace === undefined || namespace === null ? inAnswer(files) : uploaded(files, grantOf(namespace));
  }
}

interface MarkedFile {
  readonly file: FilePart["file"];
  readonly path: string;
  readonly read: ReadGrant | undefined;
}

function markedFile(part: Part): MarkedFile {
  const marker = part.metadata?.[DATA_OBJECTS_URN];
  if (part.kind !== "file" || typeof marker !== "object" || marker === null) {
    throw new AgentEnvError(
      "invalid_argument",
      `a computer takes file parts that name their path, and this is a ${part.kind} part`,
      { hint: `metadata: {"${DATA_OBJECTS_URN}": {"path": "relative/path"}}` },
    );
  }
  const { path, read } = marker as { path?: unknown; read?: unknown };
  const checked = RelativePath.safeParse(path);
  if (!checked.success) {
    throw new AgentEnvError(
      "invalid_argument",
      `the path ${JSON.stringify(path)} is not ${typeof path === "string" ? describeIssues(checked.error) : "a text"}`,
    );
  }
  const grant = read === undefined ? undefined : ReadGrant.safeParse(read);
  if (grant?.success === false) {
    throw new AgentEnvError("invalid_argument", `the read grant is none: ${fieldsOf(grant.error.issues)}`);
  }
  return { file: part.file, path: checked.data, read: grant?.data };
}

function grantOf(namespace: unknown): WriteGrant {
  const grant = WriteGrant.safeParse(namespace);
  if (grant.success) return grant.data;
  throw new AgentEnvError("invalid_argument", `write_namespace is no grant: ${fieldsOf(grant.error.issues)}`);
}

/** The fields alone: their values are what lets the holder in. */
function fieldsOf(issues: readonly { path: readonly PropertyKey[] }[]): string {
  return issues.map(({ path }) => path.map(String).join(".") || "it is no object").join(", ");
}

function bytesOf(file: FilePart["file"]): HomeFile["bytes"] {
  return "bytes" in file ? decodeBase64(file.bytes) : download(file.uri);
}

async function inAnswer(files: readonly FoundFile[]): Promise<Part[]> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (total > MAX_ANSWER_BYTES) {
    throw new AgentEnvError("limit_exceeded", `the data paths hold ${total} bytes, and an answer ${MAX_ANSWER_BYTES}`, {
      hint: "ask with a write_namespace, or narrow data_paths",
    });
  }
  const parts: Part[] = [];
  for (const found of files) {
    const file = await openHomeFile(found);
    if (file === undefined) continue;
    try {
      const bytes = (await file.readFile()).toString("base64");
      parts.push(filePart(found.path, { bytes, name: basename(found.path) }));
    } finally {
      await file.close();
    }
  }
  return parts;
}

async function uploaded(files: readonly FoundFile[], grant: WriteGrant): Promise<Part[]> {
  const upload = new GrantedUpload(grant);
  const parts: Part[] = [];
  for (const { path, real } of files) {
    await upload.upload(path, real);
    parts.push(filePart(path, { uri: path, name: basename(path) }));
  }
  return parts;
}

function filePart(path: string, file: FilePart["file"]): Part {
  return { kind: "file", file, metadata: { [DATA_OBJECTS_URN]: { path } } };
}
