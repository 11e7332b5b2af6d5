import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";
import { isRoot, sessionUser } from "./desktop.js";
import { until } from "./until.js";
import { XServer } from "./x-server.js";

const run = promisify(execFile);

const VERSION = "0.9.1364";
/** The driver's own file, and what it needs to run. */
const FRAMEWORK = `agentenv-framework==${VERSION}`;
const PACKAGES = ["agentenv-framework-protocol[computer]==0.1.379", "mss==10.2.0", "python-xlib==0.33"];
const DRIVER = "agent_env/drivers/envs/reference/driver.py";
const FOLDER = join(packageRoot, ".agentenv", "tools", `published-reference-${VERSION}`);
/** The machine's own, which every user of it can run. */
const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

/** The published Python reference driver, run by an unprivileged user. */
export class PublishedReference implements AsyncDisposable {
  private constructor(
    readonly url: string,
    readonly pid: number,
    private readonly end: () => Promise<void>,
  ) {}

  /** Starts it on a display that is there, else on an X server of its own. */
  static async start(display?: string): Promise<PublishedReference> {
    await install();
    const server = display === undefined ? await XServer.xvfb() : undefined;
    const folder = mkdtempSync(join(tmpdir(), "published-reference-"));
    // A user who can't read the clone needs a copy.
    cpSync(FOLDER, join(folder, "packages"), { recursive: true });
    const home = join(folder, "home");
    mkdirSync(home);
    await run("chmod", ["-R", "a+rX", folder]);
    if (isRoot) chownSync(home, sessionUser.uid, sessionUser.gid);
    chmodSync(folder, 0o755);
    const child = spawn(PYTHON, [join(folder, "packages", DRIVER)], {
      cwd: home,
      env: {
        HOME: home,
        PATH: "/usr/local/bin:/usr/bin:/bin",
        LANG: "C.UTF-8",
        DISPLAY: display ?? server?.display,
        PYTHONPATH: join(folder, "packages", "site"),
        MCP_HOST: "127.0.0.1",
        MCP_PORT: "0",
      },
      stdio: ["ignore", "ignore", "pipe"],
      ...(isRoot ? { uid: sessionUser.uid, gid: sessionUser.gid } : {}),
    });
    const gone = once(child, "exit");
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (said = (said + text).slice(-20_000)));
    const end = async () => {
      child.kill("SIGKILL");
      await gone;
      await server?.[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    };
    try {
      const url = await until(
        () => {
          if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${said}`);
          return /Uvicorn running on (http:\/\/[0-9.]+:[0-9]+)/.exec(said)?.[1];
        },
        (found) => found !== undefined,
        { ms: 30_000, every: 50, what: "the published reference driver" },
      );
      return new PublishedReference(String(url), child.pid ?? 0, end);
    } catch (thrown) {
      await end();
      throw thrown;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}

/** Installs the driver and its packages, complete or not at all. The framework itself asks for a newer Python; its driver doesn't. */
async function install(): Promise<void> {
  if (existsSync(FOLDER)) return;
  const fresh = `${FOLDER}.${process.pid}`;
  try {
    await mkdir(fresh, { recursive: true });
    await run(PYTHON, ["-m", "venv", join(fresh, "venv")], { timeout: 120_000 });
    const pip = (...args: string[]) =>
      run(join(fresh, "venv", "bin", "pip"), ["--quiet", "--disable-pip-version-check", ...args], { timeout: 300_000 });
    await pip("install", "--target", join(fresh, "site"), ...PACKAGES);
    await pip("download", "--no-deps", "--ignore-requires-python", "--dest", join(fresh, "wheels"), FRAMEWORK);
    const [wheel = ""] = readdirSync(join(fresh, "wheels"));
    const unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])";
    await run(PYTHON, ["-c", unpack, join(fresh, "wheels", wheel), DRIVER, fresh]);
    for (const scaffold of ["venv", "wheels"]) await rm(join(fresh, scaffold), { recursive: true });
    await rename(fresh, FOLDER);
  } catch (thrown) {
    await rm(fresh, { recursive: true, force: true });
    if (!existsSync(FOLDER)) throw thrown;
  }
}
