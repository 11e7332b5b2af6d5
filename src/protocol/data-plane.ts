import { z } from "zod";

/** The data plane's shapes (JSON-RPC at `/agentenv`). Source: AgentEnv protocol 1.0. */

/** Declares on the card what data an environment takes and gives. */
export const INTAKE_URN = "urn:agentenv:intake/v1";
/** The key in a part's metadata under which a path, or a grant to read it elsewhere, is named. */
export const DATA_OBJECTS_URN = "urn:agentenv:data-objects/v1";

/** A path below a root that the receiver chooses: normalized, relative, with forward slashes. */
export const RelativePath = z.string().refine(isRelativePath, {
  error: "a normalized path relative to the root: no leading slash, no '.', '..' or empty part, no backslash, no NUL",
});

function isRelativePath(path: string): boolean {
  return (
    path.length > 0 &&
    !path.includes("\0") &&
    !path.includes("\\") &&
    path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  );
}

const metadata = z.record(z.string(), z.unknown()).nullish();

export const FileWithBytes = z.object({
  /** Base64. A body too large for one string hands the encoded bytes over as a Buffer. */
  bytes: z.union([z.string(), z.instanceof(Buffer)]),
  mimeType: z.string().nullish(),
  name: z.string().nullish(),
});
export const FileWithUri = z.object({ uri: z.string(), mimeType: z.string().nullish(), name: z.string().nullish() });

/** A part that is text. */
export const TextPart = z.object({ kind: z.literal("text"), text: z.string(), metadata });
/** A part that is a file. */
export const FilePart = z.object({ kind: z.literal("file"), file: z.union([FileWithBytes, FileWithUri]), metadata });
/** A part that is a JSON object. */
export const DataPart = z.object({ kind: z.literal("data"), data: z.record(z.string(), z.unknown()), metadata });
/** A piece of data that crosses the data plane. */
export const Part = z.discriminatedUnion("kind", [TextPart, FilePart, DataPart]);

/** A part that is text. */
export type TextPart = z.infer<typeof TextPart>;
/** A part that is a file: its bytes in base64, or where they are. */
export type FilePart = z.infer<typeof FilePart>;
/** A part that is a JSON object. */
export type DataPart = z.infer<typeof DataPart>;
/** A piece of data that crosses the data plane. */
export type Part = z.infer<typeof Part>;

export const AddDataParams = z.object({ parts: z.array(Part).min(1) });
export const ResetDataParams = z.object({});
/** The params of `data/get`. */
export const GetDataParams = z.object({ write_namespace: z.record(z.string(), z.unknown()).nullish() });
/** The params of `data/get`. */
export type GetDataParams = z.infer<typeof GetDataParams>;

/** One way in which data crosses the data plane, as `intake/v1` declares it. */
export interface IntakeFormat {
  part: "text" | "file" | "data";
  format: string;
  load?: "additive" | "replace";
  mimeTypes?: string[];
}
