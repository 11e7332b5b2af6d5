import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { messageOf, SetupError } from "../../src/errors.js";
import { packageRoot } from "../../src/package-root.js";
import { ARCHES, type Arch, Pin } from "./pin-schema.js";

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
