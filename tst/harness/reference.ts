import { ReferenceDriver } from "../../drivers/reference/driver.js";
import { ComputerSettings } from "../../src/computer/settings.js";
import { Application } from "../../src/environment/application.js";
import { Caller } from "../../src/environment/caller.js";
import type { JsonObject } from "../../src/protocol/tool.js";
import { TestCaller } from "../fakes/computer-calls.js";
import { FakeLog, type FakeSession, fakeSession } from "../fakes/computer-session.js";

/** The reference driver on a display that is there, without a desktop and without HTTP in between. */
export class ReferenceComputer implements AsyncDisposable {
  private constructor(
    readonly driver: ReferenceDriver,
    readonly application: Application,
    readonly log: FakeLog,
    private readonly session: FakeSession,
  ) {}

  static async start(display: string, settings: JsonObject = {}, callDeadlineMs = 110_000): Promise<ReferenceComputer> {
    const log = new FakeLog();
    const session = { ...fakeSession(), display };
    const quick = { tap_hold_ms: 0, type_delay_ms: 0, ...settings };
    const driver = new ReferenceDriver({ session, log, settings: ComputerSettings.parse(quick), callDeadlineMs });
    await driver.prepare();
    return new ReferenceComputer(driver, await Application.build(driver, log), log, session);
  }

  caller(name = "someone", signal = new AbortController().signal): TestCaller {
    return new TestCaller(this.application, new Caller(name), signal);
  }

  /** Calls the `set` of an extension, such as `computer-keyboard`. */
  async set(extension: string, params: JsonObject): Promise<void> {
    const method = this.application.extensions
      .find(({ uri }) => uri === `urn:agentenv:${extension}/v1`)
      ?.methods.find(({ name }) => name === "set");
    if (method === undefined) throw new Error(`${extension} can't be set`);
    const context = { role: undefined, signal: new AbortController().signal };
    await method.handle(method.request.parse(params) as never, context as never);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver.close();
    this.session[Symbol.dispose]();
  }
}
