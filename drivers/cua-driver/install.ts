import { constants } from "node:fs";
import { access, chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf, SetupError } from "../../src/errors.js";
import { makeFolder } from "../../src/make-folder.js";
import { fileDigest } from "./digests.js";
import { readExecutable } from "./executable.js";
import { hostArch } from "./pin.js";
import { digestServed, servedDifferences } from "./pin-differences.js";
import type { Arch, Pin } from "./pin-schema.js";
import { parseServed, readServedTexts, type Served, type ServedTexts, SKILL, writeServed } from "./served.js";
import { downloadWheel, extractExecutable, isDiskError } from "./wheel.js";

/** cua-driver as it is installed. */
export interface InstalledDriver {
  /** `<dataDir>/drivers/cua-driver/<version>/` */
  readonly folder: string;
  readonly executable: string;
  /** The folder of the skill's files, its SKILL.md in it. */
  readonly skillFolder: string;
}

export interface InstallOptions {
  readonly dataDir: string;
  readonly pin: Pin;
  /** A wheel file to install from; then nothing is downloaded. */
  readonly from?: string;
  /** The executable itself, to install from; then nothing is downloaded. */
  readonly program?: string;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

const INSTALL_HINT = "Install it: agentenv driver install cua-driver";
/** What an install that was killed leaves is removed by a later one, once it is this old. */
const ABANDONED_MS = 60 * 60_000;
const UNFINISHED = ".installing-";
const EXECUTABLE = "cua-driver";

export function installedDriver(dataDir: string, pin: Pin): InstalledDriver {
  const folder = join(dataDir, "drivers", "cua-driver", pin.driver.version);
  return { folder, executable: join(folder, EXECUTABLE), skillFolder: join(folder, "served", SKILL) };
}

/**
 * Installs the pinned version: its wheel for this machine, the executable in it, and everything that the executable serves,
 * each checked against the pin. What is installed already is checked, and left alone where nothing is different, and so is
 * the file that was named. The folder
 * appears whole or not at all, whoever else installs the same at that time; a failed install leaves nothing.
 * @returns whether anything had to be installed
 * @throws SetupError for anything that isn't as pinned, naming both digests, and for a download or a disk that fails
 */
export async function installCuaDriver(
  options: InstallOptions,
): Promise<InstalledDriver & { readonly fresh: boolean }> {
  const { dataDir, pin, onProgress } = options;
  const arch = hostArch();
  const installed = installedDriver(dataDir, pin);
  if ((await verifyInstalled(dataDir, pin)).length === 0) {
    await requireAsPinned(options, arch);
    return { ...installed, fresh: false };
  }
  const parent = join(dataDir, "drivers", "cua-driver");
  let scratch: string | undefined;
  await makeReadableFolder(parent).catch((thrown: unknown) => {
    throw cantInstall(dataDir, thrown);
  });
  try {
    await removeAbandoned(parent);
    scratch = await mkdtemp(join(parent, UNFINISHED));
    const folder = join(scratch, "driver");
    await fill(folder, scratch, arch, options);
    await makeReadable(folder);
    await moveInto(folder, scratch, options);
    onProgress?.(`Installed cua-driver ${pin.driver.version} in ${installed.folder}`);
    return { ...installed, fresh: true };
  } catch (thrown) {
    throw isDiskError(thrown) ? cantInstall(dataDir, thrown) : thrown;
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  }
}

/** Whoever names a file wants that file installed: another one is refused even where nothing has to be. */
async function requireAsPinned(options: InstallOptions, arch: Arch): Promise<void> {
  const { from, pin } = options;
  if (from === undefined) return;
  const differences = await wheelDifference(from, arch, options);
  if (differences.length > 0) throw notAsPinned(from, pin, differences);
}

function cantInstall(dataDir: string, cause: unknown): SetupError {
  return new SetupError(`cua-driver can't be installed in ${dataDir}: ${messageOf(cause)}`, {
    hint: "Choose another data folder with AGENTENV_DATA, or make room or rights there.",
    cause,
  });
}

/** Makes the folder that is to be the installed one, with everything in it verified. */
async function fill(folder: string, scratch: string, arch: Arch, options: InstallOptions): Promise<void> {
  const { pin, program, onProgress, signal } = options;
  await mkdir(folder);
  const executable = join(folder, EXECUTABLE);
  const source = program ?? (await wheelFor(scratch, arch, options));
  onProgress?.(`Verifying ${source}`);
  const wheelDifferences = program === undefined ? await wheelDifference(source, arch, options) : [];
  if (program === undefined) await extractExecutable(source, executable, signal);
  else await copyFile(program, executable);
  const { sha256 } = await fileDigest(executable, signal);
  const differences = [...wheelDifferences, ...executableDifference(sha256, pin, arch)];
  if (differences.length > 0) throw notAsPinned(source, pin, differences);
  await chmod(executable, 0o755);
  onProgress?.("Reading what it serves");
  const texts = await readExecutable(executable, signal);
  const served = servedNotAsPinned(texts, pin);
  if (served.length > 0) throw notAsPinned(executable, pin, served);
  await writeServed(join(folder, "served"), texts);
}

async function wheelFor(into: string, arch: Arch, { pin, from, onProgress, signal }: InstallOptions): Promise<string> {
  if (from !== undefined) return from;
  const platforms = [pin.arches[arch].wheel.platform];
  const otherwise = "install from a wheel file with --from FILE.whl";
  return await downloadWheel({ version: pin.driver.version, platforms, into, otherwise, onProgress, signal });
}

async function wheelDifference(wheel: string, arch: Arch, { pin, signal }: InstallOptions): Promise<string[]> {
  const pinned = pin.arches[arch].wheel.sha256;
  const { sha256 } = await digestOf(wheel, signal);
  return sha256 === pinned ? [] : [`the wheel's sha256 is ${sha256}, pinned is ${pinned}`];
}

/**
 * Gives the finished folder its name. Where a folder has that name already it stays if it is as pinned, since another
 * install of the same was faster; a damaged one goes away with the scratch folder, and a daemon that runs from it keeps its
 * file.
 */
async function moveInto(folder: string, scratch: string, { dataDir, pin }: InstallOptions): Promise<void> {
  const target = installedDriver(dataDir, pin).folder;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await rename(folder, target);
    } catch (thrown) {
      const taken = ["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes((thrown as NodeJS.ErrnoException).code ?? "");
      if (!taken || attempt === 5) throw thrown;
    }
    if ((await verifyInstalled(dataDir, pin)).length === 0) return;
    await rename(target, join(scratch, `replaced-${attempt}`)).catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== "ENOENT") throw thrown;
    });
  }
}

/** Everyone may read what lies in the folder and run the executable, whatever the umask is: the session user has to. */
async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const runs = entry.isDirectory() || entry.name === EXECUTABLE;
    await chmod(join(entry.parentPath, entry.name), runs ? 0o755 : 0o644);
  }
}

/** Makes a folder and those above it that are missing, each readable by everyone. */
async function makeReadableFolder(folder: string): Promise<void> {
  const first = makeFolder(folder);
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(UNFINISHED)) continue;
    const folder = join(parent, name);
    const age = Date.now() - ((await stat(folder).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > ABANDONED_MS) await rm(folder, { recursive: true, force: true });
  }
}

/** What is installed against the pin, a line a difference; none when all is as pinned. */
export async function verifyInstalled(dataDir: string, pin: Pin): Promise<string[]> {
  const arch = hostArch();
  const { folder, executable } = installedDriver(dataDir, pin);
  try {
    await access(folder);
  } catch {
    return [`cua-driver ${pin.driver.version} isn't installed in ${folder}`];
  }
  const [ofExecutable, ofServed] = await Promise.all([
    verifyExecutable(executable, pin, arch).then(none, oneLine),
    readServedTexts(join(folder, "served")).then((texts) => servedNotAsPinned(texts, pin), oneLine),
  ]);
  return [...ofExecutable, ...ofServed];
}

/**
 * Checks the executable that is about to run: its sha256 against the pin, and that it can be run.
 * @throws SetupError naming both digests, or what is missing
 */
export async function verifyExecutable(executable: string, pin: Pin, arch = hostArch(), signal?: AbortSignal) {
  let digest: string;
  try {
    await access(executable, constants.X_OK);
    digest = (await fileDigest(executable, signal)).sha256;
  } catch (thrown) {
    signal?.throwIfAborted();
    throw new SetupError(`cua-driver's executable can't be used: ${messageOf(thrown)}`, {
      hint: INSTALL_HINT,
      cause: thrown,
    });
  }
  const differences = executableDifference(digest, pin, arch);
  if (differences.length > 0) throw notAsPinned(executable, pin, differences);
}

/**
 * What the installed executable serves, from the files beside it, checked against the pin.
 * @throws SetupError where they are missing or different
 */
export async function readServed(dataDir: string, pin: Pin): Promise<Served> {
  const { folder } = installedDriver(dataDir, pin);
  const texts = await readServedTexts(join(folder, "served"));
  const differences = servedNotAsPinned(texts, pin);
  if (differences.length > 0) throw notAsPinned(join(folder, "served"), pin, differences);
  const served = parseServed(texts);
  // Beside a daemon `cua-driver mcp` lists fewer keys than alone; ours are those.
  const listKeys = Object.entries(served.listKeys).filter(([key]) => key in pin.listExtras);
  return { ...served, listKeys: Object.fromEntries(listKeys) };
}

function servedNotAsPinned(texts: ServedTexts, pin: Pin): string[] {
  return servedDifferences(pin, digestServed(parseServed(texts), Object.keys(pin.listExtras)));
}

function executableDifference(digest: string, pin: Pin, arch: Arch): string[] {
  const pinned = pin.arches[arch].executable.sha256;
  return digest === pinned ? [] : [`the executable's sha256 is ${digest}, pinned for ${arch} is ${pinned}`];
}

function notAsPinned(what: string, pin: Pin, differences: readonly string[]): SetupError {
  return new SetupError(`${what} isn't cua-driver ${pin.driver.version} as pinned:\n${differences.join("\n")}`, {
    hint: "It isn't run. Install the pinned version anew: agentenv driver install cua-driver",
  });
}

async function digestOf(wheel: string, signal: AbortSignal | undefined) {
  try {
    return await fileDigest(wheel, signal);
  } catch (thrown) {
    signal?.throwIfAborted();
    throw new SetupError(`the wheel can't be read: ${messageOf(thrown)}`, {
      hint: "name the file of the pinned version's wheel",
      cause: thrown,
    });
  }
}

function none(): string[] {
  return [];
}

function oneLine(thrown: unknown): string[] {
  if (thrown instanceof SetupError) return [thrown.message];
  throw thrown;
}
