import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** An X server of a test's own. */
export class Xvfb implements AsyncDisposable {
  #child: ChildProcess;

  private constructor(
    child: ChildProcess,
    readonly display: string,
  ) {
    this.#child = child;
  }

  static async start(): Promise<Xvfb> {
    const { child, display } = await launch([]);
    return new Xvfb(child, display);
  }

  /** Kills it at once and waits until it is gone. */
  async kill(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  /** Starts another one on the same display, and waits until it answers. */
  async again(): Promise<void> {
    const { child } = await launch([this.display]);
    this.#child = child;
  }

  /** Runs a program on the display and waits until it has ended well. */
  async run(file: string, ...args: string[]): Promise<void> {
    const child = spawn(file, args, { env: { ...process.env, DISPLAY: this.display }, stdio: "ignore" });
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${code}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await gone;
  }
}

async function launch(display: readonly string[]): Promise<{ child: ChildProcess; display: string }> {
  const args = [...display, "-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"];
  const child = spawn("Xvfb", args, { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, "line").then(([each]) => String(each)),
    once(child, "exit").then(([code]) => {
      throw new Error(`Xvfb ended with ${code}`);
    }),
  ]);
  return { child, display: `:${line}` };
}
