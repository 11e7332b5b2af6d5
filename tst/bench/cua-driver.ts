import { execFile } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";
import { type Computer, startComputer } from "../harness/computer.js";
import { cuaDriver } from "../harness/cua-mcp.js";
import { RawMcp } from "./clients.js";
import { type Row, row, timing } from "./measure.js";

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
  return [
    ...(await onComputer(async (computer) => JSON.parse(await measureAsSessionUser(computer)) as Section[])),
    await onComputer(memory),
    await onComputer(recovery),
    { title: "start to ready (under 3,000 ms)", rows: [timing("agentenv up bundles/desk", starts)] },
  ];
}

async function onComputer<T>(measure: (computer: Computer) => Promise<T>): Promise<T> {
  await using computer = await startComputer();
  return await measure(computer);
}

const SESSIONS = 1_000;

/** What the server's memory grows by with each session that is open and has called a tool of cua-driver's once. */
async function memory(computer: Computer): Promise<Section> {
  const open = async (count: number) => {
    const sessions: RawMcp[] = [];
    for (let opened = 0; opened < count; opened += 1) {
      const mcp = await RawMcp.open(computer.mcp);
      await mcp.tool("get_screen_size");
      sessions.push(mcp);
    }
    return sessions;
  };
  for (const mcp of await open(200)) await mcp.close();
  const before = resident(computer.pid);
  const sessions = await open(SESSIONS);
  const each = ((resident(computer.pid) - before) * 1024) / SESSIONS;
  for (const mcp of sessions) await mcp.close();
  return {
    title: `${SESSIONS} open sessions (KB resident for each)`,
    rows: [
      {
        name: "a session",
        p50: each,
        p95: each,
        count: SESSIONS,
        ratio: each / 100,
        against: "100 KB",
        goal: { most: 1 },
      },
    ],
  };
}

/** From a SIGKILL of the daemon to the first answer through us, beside a daemon's own start to its first answer. */
async function recovery(computer: Computer): Promise<Section> {
  const mcp = await RawMcp.open(computer.mcp);
  await mcp.tool("get_screen_size");
  const times = { recovered: [] as number[], started: [] as number[] };
  for (let round = 0; round < 15; round += 1) {
    const kill = `kill -9 "$(cat ${computer.runDir}/cua-driver.pid)"; date +%s%3N`;
    const killed = Number(await computer.run("sh", "-c", kill));
    while (!(await mcp.tool("get_screen_size").then(Boolean, () => false))) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    times.recovered.push(Date.now() - killed);
    times.started.push(Number(await computer.run("python3", "-c", OWN_START, cuaDriver(computer))));
  }
  await mcp.close();
  const timings = new Map(Object.entries(times).map(([name, each]) => [name, timing(name, each)]));
  return {
    title: "the daemon killed with SIGKILL, to the first answer",
    rows: [row(timings, "recovered", "started", { most: 1.5 }), row(timings, "started")],
  };
}

/** Starts a daemon of its own and asks it until it answers. */
const OWN_START = `
import os, socket, subprocess, sys, tempfile, time
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "daemon.sock")
    command = [sys.argv[1], "serve", "--socket", path, "--pid-file", path + ".pid"]
    command += ["--dangerously-bypass-approvals", "--no-overlay"]
    quiet = {"CUA_DRIVER_RS_TELEMETRY_ENABLED": "0", "CUA_DRIVER_RS_UPDATE_CHECK": "0"}
    none = subprocess.DEVNULL
    start = time.monotonic()
    daemon = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=none, stderr=none)
    while True:
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
                s.sendall(b'{"method":"call","name":"get_screen_size","args":{}}\\n')
                if s.recv(100): break
            except OSError: time.sleep(0.002)
    print((time.monotonic() - start) * 1000)
    daemon.kill()
    daemon.wait()`;

/** In megabytes. */
function resident(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
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
    const args = [computer.mcp, computer.socket, cuaDriver(computer), computer.display];
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
