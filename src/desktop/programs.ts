import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../errors.js";

/** Where programs of a session are looked for, as Debian's login gives it to a person. */
export const SESSION_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

/** The Debian package that brings each program a computer needs. */
const PACKAGES = {
  "dbus-daemon": "dbus",
  "dbus-send": "dbus",
  flock: "util-linux",
  getent: "libc-bin",
  openbox: "openbox",
  setpriv: "util-linux",
  timeout: "coreutils",
  tini: "tini",
  unshare: "util-linux",
  xhost: "x11-xserver-utils",
  xsetroot: "x11-xserver-utils",
  Xvfb: "xvfb",
  "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
} as const;

export type NeededProgram = keyof typeof PACKAGES;

/** What has to be there to become the session user and to keep its processes together. */
export const ENTRY_PROGRAMS = [
  "flock",
  "setpriv",
  "timeout",
  "tini",
  "unshare",
] as const satisfies readonly NeededProgram[];

/** What a desktop is made of, apart from the X server. */
export const DESKTOP_PROGRAMS = [
  "/usr/libexec/at-spi-bus-launcher",
  "dbus-daemon",
  "dbus-send",
  "openbox",
  "xhost",
  "xsetroot",
] as const satisfies readonly NeededProgram[];

/** The path of an executable file: a name is looked up in `SESSION_PATH`, a path is taken as it is. */
export function findProgram(name: string): string | undefined {
  const candidates = name.includes("/") ? [name] : SESSION_PATH.split(":").map((folder) => join(folder, name));
  return candidates.find(isExecutable);
}

/** Refuses when a program is missing: one SetupError that names all of them and the line that installs them. */
export function requirePrograms(names: readonly NeededProgram[]): void {
  const missing = names.filter((name) => findProgram(name) === undefined);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((name) => PACKAGES[name]))].sort();
  throw new SetupError(
    `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not installed, and a computer needs ${missing.length === 1 ? "it" : "them"}`,
    { hint: installLine(packages) },
  );
}

function installLine(packages: readonly string[]): string {
  return `${process.getuid?.() === 0 ? "" : "sudo "}apt-get install -y ${packages.join(" ")}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
