import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Xorg without a graphics card or devices: it has a card's outputs, and modes up to 1920x1080. */
const DUMMY = `Section "ServerFlags"
  Option "AutoAddDevices" "false"
  Option "AutoEnableDevices" "false"
  Option "DontVTSwitch" "true"
EndSection
Section "Device"
  Identifier "dummy"
  Driver "dummy"
  VideoRam 65536
EndSection
Section "Monitor"
  Identifier "monitor"
  HorizSync 5-1000
  VertRefresh 5-200
EndSection
Section "Screen"
  Identifier "screen"
  Device "dummy"
  Monitor "monitor"
  DefaultDepth 24
  SubSection "Display"
    Depth 24
    Modes "1280x800"
    Virtual 1920 1080
  EndSubSection
EndSection
`;

/** An X server of a test's own, with a screen of 1280x800. */
export class XServer implements AsyncDisposable {
  #child: ChildProcess;

  private constructor(
    child: ChildProcess,
    readonly display: string,
    private readonly folder?: string,
  ) {
    this.#child = child;
  }

  static async xvfb(): Promise<XServer> {
    const { child, display } = await launch("Xvfb", XVFB);
    return new XServer(child, display);
  }

  /** One in a window of another. */
  static async xephyr(on: XServer): Promise<XServer> {
    const args = ["-screen", "1280x800", "-resizeable"];
    const { child, display } = await launch("Xephyr", args, { ...process.env, DISPLAY: on.display });
    return new XServer(child, display);
  }

  static async xorg(): Promise<XServer> {
    const folder = mkdtempSync(join(tmpdir(), "xorg-"));
    try {
      const config = join(folder, "xorg.conf");
      writeFileSync(config, DUMMY);
      const { child, display } = await launch("Xorg", ["-config", config, "-logfile", join(folder, "log")]);
      return new XServer(child, display, folder);
    } catch (thrown) {
      rmSync(folder, { recursive: true, force: true });
      throw thrown;
    }
  }

  /** Kills it at once and waits until it is gone. */
  async kill(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  /** Starts an Xvfb in its place, on the same display, and waits until it answers. */
  async again(): Promise<void> {
    const { child } = await launch("Xvfb", [this.display, ...XVFB]);
    this.#child = child;
  }

  /** Runs a program on the display and waits until it has ended well. */
  async run(file: string, ...args: string[]): Promise<void> {
    const child = spawn(file, args, { env: { ...process.env, DISPLAY: this.display }, stdio: "ignore" });
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${code}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await gone;
    }
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true, force: true });
  }
}

const XVFB = ["-screen", "0", "1280x800x24"];

async function launch(
  program: string,
  args: readonly string[],
  env = process.env,
): Promise<{ child: ChildProcess; display: string }> {
  const all = [...args, "-displayfd", "1", "-nolisten", "tcp", "-noreset"];
  const child = spawn(program, all, { env, stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, "line").then(([each]) => String(each)),
    once(child, "exit").then(([code]) => {
      throw new Error(`${program} ended with ${code}`);
    }),
  ]);
  return { child, display: `:${line}` };
}
