import { closest } from "../../src/closest.js";
import type { DriverComparison } from "../../src/computer/comparison.js";
import { ComputerDriver, type DriverOptions } from "../../src/computer/driver.js";
import type { DriverInstaller } from "../../src/computer/installer.js";
import type { Capture, Delivery, PlannedInput } from "../../src/computer/operations.js";
import type { SupportedPlatform } from "../../src/computer/platform.js";
import type { RunningService, ServiceSpec } from "../../src/computer/session.js";
import type { KnownFault, PackFile } from "../../src/computer/skill.js";
import { releaseInput } from "../../src/desktop/x-client.js";
import type { Application } from "../../src/environment/application.js";
import type { ToolContext } from "../../src/environment/context.js";
import type { ForwardedServer } from "../../src/environment/forwarded-server.js";
import { AgentEnvError, SetupError } from "../../src/errors.js";
import type { Button, Display, ReadyCheck, ScreenPoint, ScrollDirection } from "../../src/protocol/computer.js";
import type { ImageContent, JsonObject, ToolResult } from "../../src/protocol/tool.js";
import { CUA_KEYS, heldModifiers, keyPress } from "./chord.js";
import { CuaServer } from "./cua-server.js";
import { DaemonClient } from "./daemon-client.js";
import { DaemonWatch } from "./daemon-watch.js";
import { DesktopCalls } from "./desktop-calls.js";
import { ToolForwarding } from "./forwarding.js";
import { installCuaDriver, installedDriver, readServed, verifyExecutable, verifyInstalled } from "./install.js";
import { KNOWN_FAULTS } from "./known-faults.js";
import { changePin } from "./make-pin.js";
import { refuseNested, runsTools } from "./nested-tools.js";
import { pinFile, pinned } from "./pin.js";
import { ARCHES, type Pin } from "./pin-schema.js";
import { daemonCheck, type ReadyContext, startChecks } from "./ready-checks.js";
import type { Served } from "./served.js";
import { DAEMON, daemonService, socketPath } from "./service.js";
import { CallerSessions } from "./sessions.js";
import { type CuaSettings, deadlinesOf, readSettings } from "./settings.js";
import { CHARACTER_MS } from "./tool-kinds.js";

/** Characters that are sent as one `type_text`: what a cancelled call may still type. */
const PIECE = 50;

/** A computer whose driver is trycua's cua-driver: its tools, beside computer/v1 made of its desktop scope. */
export class CuaDriver extends ComputerDriver {
  static readonly installer: DriverInstaller = {
    version: pinned.driver.version,
    programs: Object.fromEntries(ARCHES.map((arch) => [`linux/${arch}`, pinned.arches[arch].executable])),
    programFile: (dataDir) => installedDriver(dataDir, pinned).executable,
    install: (request) => installCuaDriver({ ...request, pin: pinned }),
    verify: (dataDir) => verifyInstalled(dataDir, pinned),
    pin: async (request) => ({ file: pinFile(), changes: await changePin(pinFile(), request) }),
  };

  static readonly comparison: DriverComparison = {
    compare: async (request) => (await import("./compare/own-server.js")).compareWithOwnServer(request, pinned),
  };

  readonly #pin: Pin = pinned;
  readonly #client: DaemonClient;
  readonly #calls: DesktopCalls;
  readonly #sessions: CallerSessions;
  readonly #watch: DaemonWatch;
  readonly #settings: CuaSettings;
  #application: Application | undefined;
  #prepared: { readonly served: Served; readonly tools: ToolForwarding } | undefined;

  constructor(options: DriverOptions) {
    super(options);
    const { runtimeDir } = this.session;
    this.#settings = readSettings(options.settings.driver);
    this.#client = new DaemonClient({
      socketPath: socketPath(runtimeDir),
      log: this.log,
      deadlines: deadlinesOf(this.#settings),
      onDeadline: (what) => void this.#watch.missed(what),
      onUnreachable: (what) => void this.#watch.unreachable(what),
    });
    this.#watch = new DaemonWatch(this.#client, this.log);
    this.#calls = new DesktopCalls(this.#client);
    this.#sessions = new CallerSessions(this.#client, this.log);
  }

  /** Refuses an executable that isn't the pinned one, and reads what it serves. */
  override async prepare(): Promise<void> {
    const { dataDir } = this.session;
    const { executable } = installedDriver(dataDir, this.#pin);
    const [served] = await Promise.all([readServed(dataDir, this.#pin), verifyExecutable(executable, this.#pin)]);
    const tools = new ToolForwarding(served.tools, {
      client: this.#client,
      sessions: this.#sessions,
      turn: ({ caller, signal }, send) =>
        this.inputTurn(caller, signal, (turn) => {
          const { reply, settled } = send();
          turn.outlast(settled);
          return reply;
        }),
      inputDelivered: ({ caller }) => this.inputDelivered(caller),
      deadlines: this.#toolDeadlines(served),
    });
    this.#prepared = { served, tools };
  }

  override get environmentVersion(): string {
    return this.#pin.driver.version;
  }

  override get buttons(): readonly Button[] {
    return ["left", "right", "middle"];
  }

  override get maxClickCount(): number {
    return 3;
  }

  override get keys(): readonly string[] {
    return CUA_KEYS;
  }

  override get maxTextLength(): number {
    return 5_000;
  }

  override get supports(): readonly SupportedPlatform[] {
    return [{ os: { type: "linux", display: ["x11"] }, arch: ["amd64", "arm64"] }];
  }

  override get socketPath(): string {
    return socketPath(this.session.runtimeDir);
  }

  override services(): ServiceSpec[] {
    const { dataDir, runtimeDir } = this.session;
    const { executable } = installedDriver(dataDir, this.#pin);
    const afterDeath = () => this.#releaseInput();
    return [daemonService({ executable, runtimeDir, pin: this.#pin, client: this.#client, afterDeath })];
  }

  override estimateMs(input: PlannedInput): number {
    return input.kind === "type" ? input.characters * CHARACTER_MS : super.estimateMs(input);
  }

  override started(service: (name: string) => RunningService): void {
    this.#watch.watch(service(DAEMON));
  }

  override async readyChecks(signal: AbortSignal): Promise<ReadyCheck[]> {
    return [await daemonCheck(this.#ready, signal)];
  }

  override startChecks(signal: AbortSignal): Promise<ReadyCheck[]> {
    return startChecks(this.#ready, signal);
  }

  get #ready(): ReadyContext {
    return {
      pin: this.#pin,
      client: this.#client,
      session: this.session,
      service: () => this.#watch.service,
      needsAccessibility: this.#settings.needs_accessibility,
    };
  }

  /** As the verified executable writes it. Source: `mcp-config --client claude`. */
  override bundledSkill(): readonly PackFile[] {
    return this.#known.served.skillPack;
  }

  override get knownFaults(): readonly KnownFault[] {
    return KNOWN_FAULTS;
  }

  /** Its own MCP server, all of it. */
  override forwardedServers(): ForwardedServer[] {
    const { served, tools } = this.#known;
    return [new CuaServer(served, tools)];
  }

  /** A tool that isn't served, whosever it is, is answered as cua-driver answers one that there isn't. */
  override mounted(application: Application): void {
    super.mounted(application);
    this.#application = application;
  }

  /** What a caller may not call by itself it may not run inside another tool either. */
  override onToolCall({ tool, arguments: args, role }: ToolContext): undefined {
    if (!runsTools(tool)) return;
    const names = this.#known.served.tools.map(({ name }) => name);
    refuseNested(tool, args, names, (name) => this.#application?.allows(name, role) ?? true);
  }

  override async onUnknownTool(context: ToolContext): Promise<ToolResult | undefined> {
    const { tool, caller, signal } = context;
    const given: unknown = context.arguments;
    // Arguments that are none are refused before it is looked whether there is such a tool.
    if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
    return this.#known.tools.unknown(tool, { caller, signal });
  }

  override async display(signal: AbortSignal): Promise<Display> {
    const { result } = await this.#calls.read("get_screen_size", signal);
    const { structuredContent = {} } = result;
    return displayOf(structuredContent.width, structuredContent.height, structuredContent);
  }

  override async capture(signal: AbortSignal): Promise<Capture> {
    const { result, pictures } = await this.#calls.read("get_desktop_state", signal);
    const { content, structuredContent = {} } = result;
    const image = content.find((block): block is ImageContent => block.type === "image");
    if (image?.mimeType !== "image/png") {
      throw new AgentEnvError("internal", "get_desktop_state answered no PNG", { applied: "no" });
    }
    const display = displayOf(structuredContent.screen_width, structuredContent.screen_height, structuredContent);
    const [picture] = pictures;
    if (picture === undefined) return { png: Buffer.from(image.data, "base64"), display };
    return { png: picture.bytes, base64: picture.base64, display };
  }

  override click(
    { x, y }: ScreenPoint,
    button: Button,
    count: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#calls.input("click", { x, y, button, count, modifier: heldModifiers(modifiers) }, signal, delivery);
  }

  override drag(
    path: readonly ScreenPoint[],
    button: Button,
    durationMs: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    const [from, to] = [path[0], path.at(-1)] as [ScreenPoint, ScreenPoint];
    const args = { from_x: from.x, from_y: from.y, to_x: to.x, to_y: to.y, button, duration_ms: durationMs };
    return this.#calls.input("drag", { ...args, modifier: heldModifiers(modifiers) }, signal, delivery);
  }

  override async scroll(
    { x, y }: ScreenPoint,
    direction: ScrollDirection,
    amount: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    if (modifiers.length > 0) {
      throw new AgentEnvError("unsupported", "this computer can't scroll with keys held", {
        hint: "scroll without modifiers, or use the application's own keys, such as Control and + to zoom",
      });
    }
    await this.#calls.input("scroll", { x, y, direction, amount }, signal, delivery);
  }

  /** In pieces, between which a cancelled call and one past its deadline stop. */
  override async typeText(text: string, signal: AbortSignal, delivery: Delivery): Promise<void> {
    const characters = [...text];
    for (let at = 0; at < characters.length; at += PIECE) {
      signal.throwIfAborted();
      const piece = characters.slice(at, at + PIECE).join("");
      await this.#calls.input("type_text", { text: piece }, signal, delivery);
    }
  }

  override async press(chord: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    await this.#calls.input("press_key", { ...keyPress(chord) }, signal, delivery);
  }

  override async close(): Promise<void> {
    await super.close();
    this.#client.close();
  }

  /** A daemon that died in the middle of a click or a key left it down: the next press would be swallowed. */
  async #releaseInput(): Promise<void> {
    try {
      const { keys, buttons } = await releaseInput(this.session.display);
      if (keys.length + buttons.length > 0) this.log.warn({ keys, buttons }, "released what the dead daemon left down");
    } catch (thrown) {
      this.log.warn({ err: thrown }, "what the dead daemon left down can't be released");
    }
  }

  /** By tool, in milliseconds. A tool that there isn't is refused with the closest one. */
  #toolDeadlines({ tools }: Served): ReadonlyMap<string, number> {
    const names = tools.map(({ name }) => name);
    const given = Object.entries(this.#settings.tool_deadlines_s);
    for (const [name] of given) {
      if (names.includes(name)) continue;
      const near = closest(name, names);
      throw new SetupError(`[settings.driver]: tool_deadlines_s: cua-driver has no tool "${name}"`, {
        ...(near === undefined ? {} : { hint: `did you mean "${near}"?` }),
      });
    }
    return new Map(given.map(([name, seconds]) => [name, seconds * 1000]));
  }

  get #known(): { readonly served: Served; readonly tools: ToolForwarding } {
    if (this.#prepared === undefined) throw new Error("prepare() comes first");
    return this.#prepared;
  }
}

function displayOf(width: unknown, height: unknown, { scale_factor: scale }: JsonObject): Display {
  if (typeof width === "number" && typeof height === "number" && typeof scale === "number") {
    return { width, height, scale };
  }
  throw new AgentEnvError("internal", "cua-driver answered no size of the display", { applied: "no" });
}
