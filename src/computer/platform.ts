import { readFileSync } from "node:fs";

/** The platform that a computer runs on, as the card tells it; what can't be told is left out. */
export interface Platform {
  os: string;
  distribution?: string;
  version?: string;
  arch: string;
  display?: string;
}

/** A platform that a driver is made for, as the card's `supports` lists it. */
export interface SupportedPlatform {
  os: { type: string; display?: string[]; distribution?: string[]; version?: string[] };
  arch?: string[];
}

const OS_NAMES: Readonly<Record<string, string>> = { darwin: "macos", win32: "windows" };
const ARCH_NAMES: Readonly<Record<string, string>> = { x64: "amd64" };

/** Reads off the running system what platform it is. `display` is what the session shows its windows on, such as `x11`. */
export function detectPlatform(
  display: string | undefined,
  system: { platform: string; arch: string } = process,
  osRelease = "/etc/os-release",
): Platform {
  const os = OS_NAMES[system.platform] ?? system.platform;
  const release = os === "linux" ? readOsRelease(osRelease) : new Map<string, string>();
  const distribution = release.get("ID");
  const version = release.get("VERSION_ID");
  return {
    os,
    ...(distribution === undefined ? {} : { distribution }),
    ...(version === undefined ? {} : { version }),
    arch: ARCH_NAMES[system.arch] ?? system.arch,
    ...(display === undefined ? {} : { display }),
  };
}

/** os-release(5): `NAME=value` lines, the value bare or in quotes. */
function readOsRelease(file: string): Map<string, string> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return new Map();
  }
  const fields = text.split("\n").flatMap((line): [string, string][] => {
    const [, name, quoted, bare] = /^([A-Z_]+)=(?:(["'].*["'])|(.*))$/.exec(line.trim()) ?? [];
    if (name === undefined) return [];
    return [[name, quoted === undefined ? (bare ?? "") : quoted.slice(1, -1)]];
  });
  return new Map(fields.filter(([, value]) => value !== ""));
}
