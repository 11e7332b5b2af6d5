import { ComputerSettings } from "../../src/computer/settings.js";
import { ForwardedTool } from "../../src/environment/served-tool.js";
import { CHECKS } from "../../src/probe/checks/list.js";
import type { CheckResult } from "../../src/probe/report.js";
import { runProbe } from "../../src/probe/run.js";
import type { JsonObject } from "../../src/protocol/tool.js";
import { FakeLog, type FakeSession, fakeSession } from "./computer-session.js";
import { type Lie, lyingWith } from "./lying.js";
import { FullPaintDriver } from "./paint-driver.js";
import { type Serving, serve } from "./serving.js";

/** A screen that is large enough for every basic check, and a forwarded tool. */
class LargePaintDriver extends FullPaintDriver {
  override screen = { width: 200, height: 160, scale: 1 };

  override get displayModes(): readonly (readonly [number, number])[] {
    return [
      [200, 160],
      [100, 80],
    ];
  }

  override forwardedTools(): ForwardedTool[] {
    const definition = { name: "far_look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
    return [new ForwardedTool(definition, async () => ({ content: [] }))];
  }
}

/** A served computer without a display that tells one lie at a time. */
export class LyingComputer implements AsyncDisposable {
  #lie: Lie = {};

  private constructor(
    private readonly session: FakeSession,
    readonly serving: Serving,
  ) {
    lyingWith(serving.application, () => this.#lie);
  }

  static async start(): Promise<LyingComputer> {
    const session = fakeSession();
    try {
      const driver = new LargePaintDriver({ session, log: new FakeLog(), settings: ComputerSettings.parse({}) });
      return new LyingComputer(session, await serve(driver));
    } catch (thrown) {
      session[Symbol.dispose]();
      throw thrown;
    }
  }

  tell(lie: Lie): void {
    this.#lie = lie;
  }

  /** What the basic checks of this name come to while it tells `told`; all of them without a name. */
  async probed(told: Lie, name?: string): Promise<CheckResult[]> {
    this.tell(told);
    const checks = name === undefined ? CHECKS : CHECKS.filter((check) => check.name.startsWith(name));
    try {
      return (await runProbe(this.serving.url, { level: "basic", checks, timeoutMs: 8_000 })).checks;
    } finally {
      this.tell({});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.serving[Symbol.asyncDispose]();
    this.session[Symbol.dispose]();
  }
}

/** A lie about one tool's calls. */
export function about(tool: string, call: NonNullable<Lie["call"]>): Lie {
  return { call: (name, args, context, real) => (name === tool ? call(name, args, context, real) : real(name, args)) };
}

/** Other arguments than were given. */
export const taking = (tool: string, change: (args: JsonObject) => JsonObject): Lie =>
  about(tool, (name, args, _, real) => real(name, change(args)));
