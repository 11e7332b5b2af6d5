import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";
import { until } from "./until.js";

const run = promisify(execFile);

const VERSION = "0.9.1364";
const PACKAGES = ["agentenv-framework-protocol[computer]==0.1.379", "mss", "python-xlib"];
const VENV = join(packageRoot, ".agentenv", "venvs", `published-reference-${VERSION}`);

/** The published Python reference driver, as a process on a display. */
export interface PublishedReference extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

/** Starts it on a display that is there. The first time its packages are installed, complete or not at all. */
export async function startPublishedReference(display: string): Promise<PublishedReference> {
  await install();
  const port = await freePort();
  const driver = join(VENV, "framework", "agent_env", "drivers", "envs", "reference", "driver.py");
  const child = spawn(join(VENV, "bin", "python"), [driver], {
    env: { ...process.env, DISPLAY: display, MCP_HOST: "127.0.0.1", MCP_PORT: String(port) },
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  const peer: PublishedReference = { url, pid: child.pid ?? 0, [Symbol.asyncDispose]: () => end(child) };
  try {
    await until(
      async () => (await fetch(`${url}/agentenv/ext/computer-ready/status`).catch(() => undefined))?.ok === true,
      (ready) => ready,
      { ms: 30_000, every: 100, what: "the published reference driver" },
    );
    return peer;
  } catch (thrown) {
    await end(child);
    throw thrown;
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** The framework's own requirements are many, and its driver needs none of them: its files alone are unpacked. */
async function install(): Promise<void> {
  if (existsSync(join(VENV, "complete"))) return;
  await rm(VENV, { recursive: true, force: true });
  await run("python3", ["-m", "venv", VENV], { timeout: 120_000 });
  const pip = join(VENV, "bin", "pip");
  await run(pip, ["install", "--quiet", ...PACKAGES], { timeout: 300_000 });
  const options = ["--no-deps", "--ignore-requires-python", "--quiet", "--dest", join(VENV, "wheels")];
  await run(pip, ["download", ...options, `agentenv-framework==${VERSION}`], { timeout: 300_000 });
  const unpack =
    "import glob, sys, zipfile; [zipfile.ZipFile(f).extractall(sys.argv[2]) for f in glob.glob(sys.argv[1])]";
  await run(join(VENV, "bin", "python"), ["-c", unpack, join(VENV, "wheels", "*.whl"), join(VENV, "framework")]);
  await writeFile(join(VENV, "complete.part"), "");
  await rename(join(VENV, "complete.part"), join(VENV, "complete"));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
