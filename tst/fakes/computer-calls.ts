import type { ComputerDriver, DriverOptions } from "../../src/computer/driver.js";
import { ComputerSettings } from "../../src/computer/settings.js";
import { Application } from "../../src/environment/application.js";
import { Caller } from "../../src/environment/caller.js";
import type { ExtensionMethod } from "../../src/environment/extension.js";
import { RawJson } from "../../src/protocol/raw-json.js";
import type { CallToolResult, ContentBlock, JsonObject } from "../../src/protocol/tool.js";
import { FakeLog, type FakeSession, fakeSession } from "./computer-session.js";

/** A computer as its callers see it, without HTTP in between. */
export class TestComputer<D extends ComputerDriver> implements AsyncDisposable {
  private constructor(
    readonly driver: D,
    readonly application: Application,
    readonly session: FakeSession,
    readonly log: FakeLog,
  ) {}

  static async start<D extends ComputerDriver>(
    Driver: new (options: DriverOptions) => D,
    { settings = {}, callDeadlineMs, uid }: { settings?: JsonObject; callDeadlineMs?: number; uid?: number } = {},
  ): Promise<TestComputer<D>> {
    const session = fakeSession(uid);
    const log = new FakeLog();
    try {
      const driver = new Driver({
        session,
        log,
        settings: ComputerSettings.parse(settings),
        ...(callDeadlineMs === undefined ? {} : { callDeadlineMs }),
      });
      return new TestComputer(driver, await Application.build(driver, log), session, log);
    } catch (thrown) {
      session[Symbol.dispose]();
      throw thrown;
    }
  }

  caller(name = "someone", signal: AbortSignal = new AbortController().signal): TestCaller {
    return new TestCaller(this.application, new Caller(name), signal);
  }

  /** Calls an extension's method, its params checked by the schema that the card shows. */
  async extension(uri: string, name: string, params: JsonObject = {}): Promise<JsonObject> {
    const method = this.application.extensions
      .find((extension) => extension.uri === uri)
      ?.methods.find((each) => each.name === name);
    if (method === undefined) throw new Error(`there is no ${uri} ${name}`);
    const handle = method.handle as unknown as (params: unknown, context: object) => Promise<JsonObject>;
    return await handle.call(method as ExtensionMethod, method.request.parse(params), {
      role: undefined,
      signal: new AbortController().signal,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver.close();
    this.session[Symbol.dispose]();
  }
}

export class TestCaller {
  constructor(
    private readonly application: Application,
    readonly caller: Caller,
    private readonly signal: AbortSignal,
  ) {}

  async call(name: string, args: JsonObject = {}, signal: AbortSignal = this.signal): Promise<CallToolResult> {
    const result = await this.application.callTool(name, args, {
      caller: this.caller,
      role: undefined,
      signal,
      progress: () => {},
    });
    if (result === undefined) throw new Error(`no tool ${name}`);
    return (result instanceof RawJson ? result.value() : result) as CallToolResult;
  }

  /** The structured content of a call that succeeds. */
  async ok(name: string, args: JsonObject = {}): Promise<JsonObject> {
    const result = await this.call(name, args);
    if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result.structuredContent)}`);
    return result.structuredContent ?? {};
  }

  /** The code and `applied` of a call that fails. */
  async refusal(name: string, args: JsonObject = {}): Promise<[code: unknown, applied: unknown]> {
    const result = await this.call(name, args);
    if (!result.isError) throw new Error(`${name} was not refused: ${JSON.stringify(result.structuredContent)}`);
    return [result.structuredContent?.code, result.structuredContent?.applied];
  }

  async frame(args: JsonObject = {}): Promise<string> {
    return String((await this.ok("computer_screenshot", args)).frame_id);
  }
}

/** The image of a result, as bytes. */
export function imageBytes(result: CallToolResult): Buffer {
  const block = result.content.find((each): each is ContentBlock & { data: string } => each.type === "image");
  if (block === undefined) throw new Error("the result has no image");
  return Buffer.from(block.data, "base64");
}
