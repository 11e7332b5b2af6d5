import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { AgentEnvError, SetupError } from "../../src/errors.js";
import { DaemonClient, type DaemonMetadata } from "./daemon-client.js";
import { fileDigest } from "./digests.js";
import { readExecutable, StdioServer, withEmptyHome } from "./executable.js";
import { hostArch, pinText, readPin } from "./pin.js";
import { digestServed, pinDifferences } from "./pin-differences.js";
import { ARCHES, type Arch, type Pin } from "./pin-schema.js";
import { ended, killGroup, startGroup } from "./program.js";
import { parseServed } from "./served.js";
import { downloadWheel, extractExecutable, platformOf } from "./wheel.js";

const MACHINE: Readonly<Record<Arch, string>> = { amd64: "x86_64", arm64: "aarch64" };

/** glibc 2.17 to 2.41: whichever of them the version's wheels are built for. */
const GLIBC_MINORS = Array.from({ length: 25 }, (_, at) => 17 + at);

const OTHERWISE = "name a version that the index has (`python3 -m pip index versions cua-driver`)";

export interface MakePinOptions {
  readonly version: string;
  /** A folder of the caller's for the wheels and what is taken out of them. */
  readonly scratch: string;
  /** Wheels that are here already, by arch; the others are downloaded. */
  readonly wheels?: Partial<Record<Arch, string>>;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Makes the pin of a version from its wheels. What is served is read from this machine's executable; the other arch's can't
 * run here and is taken to serve the same, which `readFrom` in the pin says.
 */
export async function makePin(options: MakePinOptions): Promise<Pin> {
  const { version, scratch, signal, onProgress } = options;
  const readFrom = hostArch();
  const arches: Partial<Pin["arches"]> = {};
  const executables: Partial<Record<Arch, string>> = {};
  for (const arch of ARCHES) {
    const into = join(scratch, arch);
    await mkdir(into, { recursive: true });
    const platforms = GLIBC_MINORS.map((minor) => `manylinux_2_${minor}_${MACHINE[arch]}`);
    const wheel =
      options.wheels?.[arch] ??
      (await downloadWheel({ version, platforms, into, otherwise: OTHERWISE, onProgress, signal }));
    const platform = platformOf(wheel);
    if (platform === undefined) throw new SetupError(`${wheel} isn't named as a wheel is`);
    const executable = join(into, "cua-driver");
    await extractExecutable(wheel, executable, signal);
    arches[arch] = {
      wheel: { platform, sha256: (await fileDigest(wheel)).sha256 },
      executable: await fileDigest(executable),
    };
    executables[arch] = executable;
  }
  const { amd64, arm64 } = arches;
  const executable = executables[readFrom];
  if (!amd64 || !arm64 || executable === undefined) throw new SetupError("a wheel is missing");
  onProgress?.(`Reading what cua-driver ${version} serves`);
  const served = parseServed(await readExecutable(executable, signal));
  const { metadata, listKeys } = await readDaemon(executable, signal);
  if (served.version !== version || metadata.driver_version !== version) {
    throw new SetupError(`the wheel of ${version} carries cua-driver ${metadata.driver_version}`);
  }
  const { tools, ...digests } = digestServed(served, listKeys);
  const [first, ...others] = tools;
  if (!first) throw new SetupError(`cua-driver ${version} lists no tool`);
  return {
    $schema: "./dist/mcp.schema.json",
    driver: { package: "cua-driver", version, contractVersion: metadata.contract_version },
    arches: { amd64, arm64 },
    readFrom,
    ...digests,
    tools: [first, ...others],
  };
}

/**
 * Writes the pin of another version into `file`, whole or not at all.
 * @returns what that changes, a line a change
 */
export async function changePin(file: string, request: Omit<MakePinOptions, "scratch" | "wheels">): Promise<string[]> {
  if (!/^\d+(\.\d+)*$/.test(request.version)) {
    throw new SetupError(`${request.version} is no version of cua-driver`, { hint: "a version is like 0.37.0" });
  }
  const before = await readPin(file);
  const scratch = await mkdtemp(join(tmpdir(), "agentenv-pin-"));
  const written = `${file}.${process.pid}`;
  try {
    const pin = await makePin({ ...request, scratch });
    await writeFile(written, pinText(pin));
    await rename(written, file);
    return pinDifferences(before, pin);
  } finally {
    await rm(scratch, { recursive: true, force: true });
    await rm(written, { force: true });
  }
}

/** Asks a daemon of the executable for its metadata, and `cua-driver mcp --socket` for the keys that it lists beside tools. */
function readDaemon(
  executable: string,
  signal: AbortSignal | undefined,
): Promise<{ metadata: DaemonMetadata; listKeys: string[] }> {
  return withEmptyHome(async (home, env) => {
    const socketPath = join(home, "daemon.sock");
    const args = ["serve", "--socket", socketPath, "--pid-file", join(home, "daemon.pid"), "--no-overlay"];
    const daemon = startGroup(executable, args, { env, cwd: home, stdio: "ignore" });
    const end = ended(daemon).catch(() => undefined);
    using client = new DaemonClient({ socketPath, log: pino({ level: "silent" }) });
    try {
      const metadata = await firstAnswer(client, signal);
      const proxy = new StdioServer(executable, ["mcp", "--socket", socketPath], { env, cwd: home, signal });
      try {
        await proxy.initialize();
        const list = JSON.parse(await proxy.request("tools/list", {})) as object;
        return { metadata, listKeys: Object.keys(list).filter((key) => key !== "tools") };
      } finally {
        await proxy.close();
      }
    } finally {
      killGroup(daemon);
      await end;
    }
  });
}

const START_MS = 10_000;

async function firstAnswer(client: DaemonClient, signal: AbortSignal | undefined): Promise<DaemonMetadata> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await client.metadata();
    } catch (thrown) {
      if (!(thrown instanceof AgentEnvError) || Date.now() > deadline) throw thrown;
    }
    await sleep(20);
  }
}
