import { createWriteStream } from "node:fs";
import { chmod, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import yauzl from "yauzl";
import { messageOf, SetupError } from "../../src/errors.js";
import { runProgram } from "./program.js";

/** Where the executable lies in the wheel. */
const EXECUTABLE_ENTRY = "cua_driver/bin/cua-driver";
const DOWNLOAD_MS = 15 * 60_000;
/** The PATH's own may be one that was built without pip where Debian's has it. */
const PYTHONS = ["python3", "/usr/bin/python3"];

export interface WheelRequest {
  readonly version: string;
  /** Platform tags that will do. */
  readonly platforms: readonly string[];
  /** A folder of the caller's, for the wheel and scratch files. */
  readonly into: string;
  /** What a person can do where it can't be downloaded, beside looking at pip. */
  readonly otherwise?: string | undefined;
  /** Pythons to try, by name or path. */
  readonly pythons?: readonly string[];
  readonly onProgress?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Downloads cua-driver's wheel with pip, as pip is set up on this machine (index, proxy, certificates), and returns its
 * path. pip's own progress bar is shown where stderr is a terminal. SetupError where there is no pip or it fails.
 */
export async function downloadWheel(request: WheelRequest): Promise<string> {
  const { version, platforms, into, signal } = request;
  const bar = process.stderr.isTTY === true;
  const python = await pythonWithPip(request.pythons ?? PYTHONS, request);
  request.onProgress?.(`Downloading cua-driver ${version} (about 35 MB)`);
  const run = await runProgram(
    python,
    [
      ...["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"],
      ...(bar ? [] : ["--progress-bar", "off"]),
      ...platforms.flatMap((platform) => ["--platform", platform]),
      ...["--dest", into, `cua-driver==${version}`],
    ],
    { stdio: ["ignore", bar ? 2 : "pipe", "pipe"], signal, timeoutMs: DOWNLOAD_MS },
  );
  if (run.code !== 0) {
    throw new SetupError(`pip couldn't download cua-driver ${version}:\n${lastLines(run.stderr)}`, {
      hint: withOther("Look at pip's index and network settings (`python3 -m pip config list`)", request.otherwise),
    });
  }
  const wheel = (await readdir(into)).find((file) => file.endsWith(".whl"));
  if (wheel === undefined) throw new SetupError("pip said that it downloaded cua-driver, but there is no wheel");
  return join(into, wheel);
}

/** The platform tag in a wheel's file name. */
export function platformOf(wheel: string): string | undefined {
  return /^[^-]+-[^-]+-[^-]+-[^-]+-(\w+)\.whl$/.exec(basename(wheel))?.[1];
}

/** Takes the executable out of the wheel. A SetupError where the file is no wheel of cua-driver. */
export async function extractExecutable(wheel: string, to: string, signal?: AbortSignal): Promise<void> {
  let archive: yauzl.ZipFile | undefined;
  try {
    archive = await openArchive(wheel);
    const stream = await openEntry(archive, EXECUTABLE_ENTRY);
    await pipeline(stream, createWriteStream(to), ...(signal ? [{ signal }] : []));
  } catch (thrown) {
    signal?.throwIfAborted();
    if (thrown instanceof SetupError || isDiskError(thrown)) throw thrown;
    throw new SetupError(`${wheel} can't be read as a wheel: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    archive?.close();
  }
  await chmod(to, 0o755);
}

function openArchive(file: string): Promise<yauzl.ZipFile> {
  return new Promise((resolve, reject) => {
    yauzl.open(file, { lazyEntries: true, autoClose: false }, (error, archive) =>
      error ? reject(error) : resolve(archive),
    );
  });
}

function openEntry(archive: yauzl.ZipFile, name: string): Promise<NodeJS.ReadableStream> {
  return new Promise((resolve, reject) => {
    archive.on("entry", (entry: yauzl.Entry) => {
      if (entry.fileName !== name) return archive.readEntry();
      archive.openReadStream(entry, (error, stream) => (error ? reject(error) : resolve(stream)));
    });
    archive.on("end", () => reject(new SetupError(`the wheel has no ${name}`)));
    archive.on("error", reject);
    archive.readEntry();
  });
}

/**
 * A Python that has pip. Debian's own comes without it, but with python3-venv an environment that has it can be made.
 */
async function pythonWithPip(pythons: readonly string[], { into: scratch, otherwise, signal }: WheelRequest) {
  const options = { signal, timeoutMs: 60_000 };
  for (const python of pythons) {
    if (await succeeds(python, ["-m", "pip", "--version"], options)) return python;
  }
  const environment = join(scratch, "python");
  for (const python of pythons) {
    if (await succeeds(python, ["-m", "venv", environment], options)) return join(environment, "bin/python");
  }
  throw new SetupError("cua-driver is downloaded with pip, and no Python here has it", {
    hint: withOther("Install Debian's package python3-pip (apt-get install python3-pip)", otherwise),
  });
}

function withOther(advice: string, otherwise: string | undefined): string {
  return otherwise === undefined ? `${advice}.` : `${advice}, or ${otherwise}.`;
}

async function succeeds(file: string, args: string[], options: { signal: AbortSignal | undefined; timeoutMs: number }) {
  try {
    return (await runProgram(file, args, options)).code === 0;
  } catch (thrown) {
    options.signal?.throwIfAborted();
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw thrown;
  }
}

export function isDiskError(thrown: unknown): thrown is NodeJS.ErrnoException {
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code;
  return code !== undefined && ["EACCES", "EDQUOT", "EEXIST", "ENOSPC", "ENOTDIR", "EPERM", "EROFS"].includes(code);
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-5).join("\n");
}
