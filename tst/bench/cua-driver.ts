import { execFile } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";
import { type Computer, startComputer } from "../harness/computer.js";
import { cuaDriver } from "../harness/cua-mcp.js";
import { type Row, timing } from "./measure.js";

const run = promisify(execFile);
const BUILD = join(packageRoot, ".agentenv", "bench");

export interface Section {
  title: string;
  rows: Row[];
}

/** cua-driver behind our server, beside its own socket, its own MCP server and a bare relay. */
export async function benchCuaDriver(): Promise<Section[]> {
  const starts: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const started = performance.now();
    await using _computer = await startComputer();
    starts.push(performance.now() - started);
  }
  await using computer = await startComputer();
  const sections = JSON.parse(await measureAsSessionUser(computer)) as Section[];
  return [
    ...sections,
    { title: "start to ready (under 3,000 ms)", rows: [timing("agentenv up bundles/desk", starts)] },
  ];
}

/**
 * The daemon serves its own user alone, so what speaks to it directly has to run as that user, from where that user can read.
 */
async function measureAsSessionUser(computer: Computer): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  try {
    chmodSync(folder, 0o755);
    cpSync(BUILD, folder, { recursive: true });
    cpSync(join(packageRoot, "node_modules", "undici"), join(folder, "node_modules", "undici"), { recursive: true });
    cpSync(join(packageRoot, "package.json"), join(folder, "package.json"));
    cpSync(process.execPath, join(folder, "node"));
    const node = [join(folder, "node"), join(folder, "tst/bench/cua-driver-measure.js")];
    const args = [computer.mcp, computer.socket, cuaDriver(computer)];
    const uid = (await computer.run("id", "-u")).trim();
    const gid = (await computer.run("id", "-g")).trim();
    const become =
      process.getuid?.() === 0 ? ["setpriv", "--reuid", uid, "--regid", gid, "--init-groups", "--"] : ([] as string[]);
    const [command = "", ...rest] = [...become, ...node, ...args];
    const { stdout } = await run(command, rest, { maxBuffer: 64 << 20, cwd: folder, timeout: 600_000 });
    return stdout;
  } finally {
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
  }
}
