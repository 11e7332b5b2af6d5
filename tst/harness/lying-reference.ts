import { ReferenceDriver } from "../../drivers/reference/driver.js";
import { ComputerSettings } from "../../src/computer/settings.js";
import { CHECKS } from "../../src/probe/checks/list.js";
import type { CheckResult } from "../../src/probe/report.js";
import { runProbe } from "../../src/probe/run.js";
import { FakeLog, fakeSession } from "../fakes/computer-session.js";
import { type Lie, lyingWith } from "../fakes/lying.js";
import { type Serving, serve } from "../fakes/serving.js";
import { XServer } from "./x-server.js";

/** The reference driver, honest as a driver, on a display of its own: the lies are told between it and the wire. */
export class LyingReference implements AsyncDisposable {
  #lie: Lie = {};

  private constructor(
    readonly driver: ReferenceDriver,
    readonly serving: Serving,
    private readonly stack: AsyncDisposableStack,
  ) {
    lyingWith(serving.application, () => this.#lie);
  }

  static async start(): Promise<LyingReference> {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await XServer.xvfb());
    const base = stack.use(fakeSession());
    const environment = () => ({ ...base.user.environment(), DISPLAY: server.display, PATH: "/usr/bin:/bin" });
    const spawn: typeof base.user.spawn = (file, args, options = {}) =>
      base.user.spawn(file, args, { ...options, env: { ...environment(), ...options.env } });
    const session = { ...base, display: server.display, user: { ...base.user, environment, spawn } };
    const settings = ComputerSettings.parse({ tap_hold_ms: 5, type_delay_ms: 5 });
    const driver = new ReferenceDriver({ session, log: new FakeLog(), settings });
    await driver.prepare();
    const serving = stack.use(await serve(driver));
    return new LyingReference(driver, serving, stack.move());
  }

  tell(lie: Lie): void {
    this.#lie = lie;
  }

  /** What the full checks whose names begin so come to while it tells `told`. */
  async probed(told: Lie, ...names: string[]): Promise<CheckResult[]> {
    const checks = CHECKS.filter(({ level, name }) => level === "full" && names.some((each) => name.startsWith(each)));
    if (checks.length !== names.length) throw new Error(`${names.length} names are of ${checks.length} checks`);
    this.tell(told);
    try {
      const options = { level: "full", checks, timeoutMs: 8_000, settleMs: 700 } as const;
      return (await runProbe(this.serving.url, options)).checks;
    } finally {
      this.tell({});
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stack.disposeAsync();
  }
}
