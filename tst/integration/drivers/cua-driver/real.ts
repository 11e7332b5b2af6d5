import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { type InstalledDriver, installCuaDriver, readServed } from "../../../../drivers/cua-driver/install.js";
import { readPin } from "../../../../drivers/cua-driver/pin.js";
import type { Pin } from "../../../../drivers/cua-driver/pin-schema.js";
import { killGroup } from "../../../../drivers/cua-driver/program.js";
import type { Served } from "../../../../drivers/cua-driver/served.js";
import { daemonService } from "../../../../drivers/cua-driver/service.js";
import type { ComputerSession } from "../../../../src/computer/session.js";

/** A folder that is removed with the disposable. */
export async function temporaryFolder(name: string) {
  const path = await mkdtemp(join(tmpdir(), `${name}-`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** The pinned cua-driver in a folder of the test's own, and its daemon on a display of its own. */
export class RealDaemon {
  readonly client: DaemonClient;
  #daemon: ChildProcess | undefined;

  private constructor(
    readonly pin: Pin,
    readonly installed: InstalledDriver,
    readonly served: Served,
    readonly runtimeDir: string,
    readonly home: string,
    readonly dataDir: string,
    readonly display: string,
    private readonly x: ChildProcess,
    private readonly release: () => Promise<void>,
  ) {
    this.client = new DaemonClient({ socketPath: this.socketPath, log: pino({ level: "silent" }) });
  }

  static async start(): Promise<RealDaemon> {
    const folder = await temporaryFolder("real-cua");
    const pin = await readPin();
    const installed = await installCuaDriver({ dataDir: folder.path, pin });
    const served = await readServed(folder.path, pin);
    const runtimeDir = await mkdtemp(join(folder.path, "run-"));
    const home = await mkdtemp(join(folder.path, "home-"));
    const x = group("Xvfb", ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
    const display = `:${(await firstOutput(x)).trim()}`;
    const daemon = new RealDaemon(pin, installed, served, runtimeDir, home, folder.path, display, x, () =>
      folder[Symbol.asyncDispose](),
    );
    await daemon.run();
    return daemon;
  }

  get socketPath(): string {
    return join(this.runtimeDir, "cua-driver.sock");
  }

  get pid(): number | undefined {
    return this.client.knownPid;
  }

  /** Starts the daemon as the desktop would, and waits until it is ready. */
  async run(): Promise<void> {
    const { installed, runtimeDir, pin, client } = this;
    const spec = daemonService({ executable: installed.executable, runtimeDir, pin, client });
    const [command, ...args] = spec.command;
    const environment = { HOME: this.home, PATH: "/usr/bin:/bin", LANG: "C.UTF-8", DISPLAY: this.display };
    // The bus goes with the daemon's group: it has no session of its own.
    const bus = ["--", command, ...args];
    this.#daemon = group("dbus-run-session", bus, { ...environment, ...spec.environment }, this.home);
    await spec.ready?.(AbortSignal.timeout(15_000));
  }

  /** The session that a computer on this daemon has; by default without a bus. */
  session(bus = "unix:path=/nonexistent/bus"): ComputerSession {
    const environment = () => ({
      HOME: this.home,
      PATH: "/usr/bin:/bin",
      LANG: "C.UTF-8",
      DISPLAY: this.display,
      DBUS_SESSION_BUS_ADDRESS: bus,
    });
    return {
      display: this.display,
      runtimeDir: this.runtimeDir,
      dataDir: this.dataDir,
      user: {
        name: "someone",
        uid: 12_345,
        gid: 12_345,
        home: this.home,
        environment,
        spawn: (file, args, options = {}) =>
          spawn(file, [...args], { cwd: this.home, ...options, env: { ...environment(), ...options.env } }),
      },
    };
  }

  /** Kills the X server, as a crash would, and removes what it leaves behind. */
  async killDisplay(): Promise<void> {
    await end(this.x, "SIGKILL");
    const number = this.display.slice(1);
    await Promise.all([`/tmp/.X11-unix/X${number}`, `/tmp/.X${number}-lock`].map((path) => rm(path, { force: true })));
  }

  /** Kills the daemon alone, as a crash would. */
  kill(): void {
    if (this.pid !== undefined) process.kill(this.pid, "SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    // The X server is told to end, so that it removes its lock and its socket.
    await end(this.#daemon, "SIGKILL");
    await end(this.x, "SIGTERM");
    await this.release();
  }
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("close", resolve));
  killGroup(child, signal);
  await closed;
}

function group(file: string, args: readonly string[], env?: NodeJS.ProcessEnv, cwd?: string): ChildProcess {
  return spawn(file, args, {
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
    ...(env ? { env } : {}),
    ...(cwd ? { cwd } : {}),
  });
}

function firstOutput(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => reject(new Error(`${child.spawnfile} ended without a word`)));
    child.stdout?.once("data", (text: Buffer) => resolve(text.toString()));
  });
}
