import { z } from "zod";

/** The data plane's shapes (JSON-RPC at `/agentenv`). Source: AgentEnv protocol 1.0. */

export const INTAKE_URN = "urn:agentenv:intake/v1";
export const DATA_OBJECTS_URN = "urn:agentenv:data-objects/v1";

/** A path below a root that the receiver chooses: normalized, relative, with forward slashes. */
export const RelativePath = z.string().refine(isRelativePath, {
  error: "a normalized path relative to the root: no leading slash, no '.', '..' or empty part, no NUL",
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

export const TextPart = z.object({ kind: z.literal("text"), text: z.string(), metadata });
export const FilePart = z.object({ kind: z.literal("file"), file: z.union([FileWithBytes, FileWithUri]), metadata });
export const DataPart = z.object({ kind: z.literal("data"), data: z.record(z.string(), z.unknown()), metadata });
export const Part = z.discriminatedUnion("kind", [TextPart, FilePart, DataPart]);

export type TextPart = z.infer<typeof TextPart>;
export type FilePart = z.infer<typeof FilePart>;
export type DataPart = z.infer<typeof DataPart>;
export type Part = z.infer<typeof Part>;

export const AddDataParams = z.object({ parts: z.array(Part).min(1) });
export const ResetDataParams = z.object({});
export const GetDataParams = z.object({ write_namespace: z.record(z.string(), z.unknown()).nullish() });
export type GetDataParams = z.infer<typeof GetDataParams>;

/** One way in which data crosses the data plane, as `intake/v1` declares it. */
export interface IntakeFormat {
  part: "text" | "file" | "data";
  format: string;
  load?: "additive" | "replace";
  mimeTypes?: string[];
}
