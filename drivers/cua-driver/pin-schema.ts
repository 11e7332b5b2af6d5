import { z } from "zod";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "64 lower-case hexadecimal digits");

/** The processor architectures that have a wheel, by Debian's names. */
export const ARCHES = ["amd64", "arm64"] as const;
export type Arch = (typeof ARCHES)[number];

const PinnedArch = z.strictObject({
  wheel: z.strictObject({
    /** The wheel's platform tag, such as `manylinux_2_31_x86_64`. */
    platform: z.string().regex(/^\w+$/),
    sha256: Sha256,
  }),
  executable: z.strictObject({ size: z.int().positive(), sha256: Sha256 }),
});

const PinnedFile = z.strictObject({ path: z.string(), size: z.int().nonnegative(), sha256: Sha256 });

export const PinnedTool = z.strictObject({
  name: z.string(),
  /** Of the tool's canonical JSON, as `tools/list` shows it. */
  sha256: Sha256,
  annotations: z.record(z.string(), z.unknown()),
  /** The names of the required arguments. */
  required: z.array(z.string()),
  /** Of the canonical JSON of each further key, so that a change can be said by its place. */
  parts: z.record(z.string(), Sha256),
});
export type PinnedTool = z.infer<typeof PinnedTool>;

/**
 * What cua-driver is and serves at the pinned version: the lockfile `mcp.json`. Names, sizes and digests, none of
 * upstream's text. Digests of JSON values are of their canonical JSON (RFC 8785); sizes are bytes.
 */
export const Pin = z.strictObject({
  $schema: z.string().optional(),
  driver: z.strictObject({
    /** The package's name on PyPI. */
    package: z.literal("cua-driver"),
    version: z.string().regex(/^\d+(\.\d+)*$/),
    /** The version of the daemon's socket contract, from its `metadata`. */
    contractVersion: z.string(),
  }),
  arches: z.strictObject({ amd64: PinnedArch, arm64: PinnedArch }),
  /** What is served was read from this arch's executable; the other arch's is taken to serve the same. */
  readFrom: z.enum(ARCHES),
  instructions: z.strictObject({ size: z.int().nonnegative(), sha256: Sha256 }),
  /** The keys beside `tools` that `tools/list` of `cua-driver mcp --socket` carries. */
  listExtras: z.record(z.string(), Sha256),
  tools: z.array(PinnedTool).nonempty(),
  resources: z.array(
    z.strictObject({
      uri: z.string(),
      mimeType: z.string(),
      size: z.int().nonnegative(),
      /** Of the text. */
      sha256: Sha256,
      /** Of its entry in `resources/list`. */
      entry: Sha256,
    }),
  ),
  skills: z.array(
    z.strictObject({
      uri: z.string(),
      /** Of its entry in `skills/list`. */
      entry: Sha256,
      files: z.array(z.strictObject({ uri: z.string(), size: z.int().nonnegative(), sha256: Sha256 })),
    }),
  ),
  /** Of the errors that wrong requests are answered with. */
  refusals: Sha256,
  /** The skill's files as `cua-driver mcp-config --client claude` lays them down on Linux. */
  skillPack: z.array(PinnedFile),
});
export type Pin = z.infer<typeof Pin>;

/** The JSON Schema of `mcp.json`, for the build to write. */
export function pinJsonSchema(): object {
  return z.toJSONSchema(Pin);
}
