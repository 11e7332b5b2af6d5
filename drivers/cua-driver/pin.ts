import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { messageOf, SetupError } from "../../src/errors.js";
import { packageRoot } from "../../src/package-root.js";

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
  /** The skill's files as `cua-driver mcp-config --client claude` lays them down on Linux. */
  skillPack: z.array(PinnedFile),
});
export type Pin = z.infer<typeof Pin>;

/** The JSON Schema of `mcp.json`, for the build to write. */
export function pinJsonSchema(): object {
  return z.toJSONSchema(Pin);
}

/** Where `mcp.json` lies: at the root of this package. */
export function pinFile(): string {
  return join(packageRoot, "mcp.json");
}

/** Reads the pin. A file that isn't one is a SetupError that names the place. */
export async function readPin(file = pinFile()): Promise<Pin> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(file, "utf8"));
  } catch (thrown) {
    throw new SetupError(`${file} can't be read as JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  const pin = Pin.safeParse(parsed);
  if (!pin.success) {
    throw new SetupError(`${file} is no pin of cua-driver:\n${z.prettifyError(pin.error)}`, {
      hint: "It is written by `agentenv driver pin cua-driver --version V`, never by hand.",
      cause: pin.error,
    });
  }
  return pin.data;
}

/** This package's own pin. */
export const pinned: Pin = await readPin();

/**
 * The text of `mcp.json`: keys in the order of the schema, two spaces a level, a short list of names on one line, as the
 * project's formatter leaves it.
 */
export function pinText(pin: Pin): string {
  const lists = /\[\n\s+("[^"\n]*"(?:,\n\s+"[^"\n]*")*)\n\s*\]/g;
  const text = JSON.stringify(Pin.parse(pin), null, 2).replace(lists, (whole, names: string) => {
    const line = `[${names.replace(/,\n\s+/g, ", ")}]`;
    return line.length <= 90 ? line : whole;
  });
  return `${text}\n`;
}

/** This machine's architecture. A SetupError where cua-driver has no wheel for it. */
export function hostArch(arch: string = process.arch, platform: string = process.platform): Arch {
  if (platform === "linux" && arch === "x64") return "amd64";
  if (platform === "linux" && arch === "arm64") return "arm64";
  throw new SetupError(`cua-driver is pinned for Linux on ${ARCHES.join(" and ")}; this is ${platform} on ${arch}`, {
    hint: 'Use driver = "reference" on this machine.',
  });
}
