import type { Caller } from "../environment/caller.js";
import { addData, getData } from "../environment/decorators.js";
import { Environment, type Mounted, type Readiness } from "../environment/environment.js";
import type { ServedExtension } from "../environment/extension.js";
import type { ServedTool } from "../environment/served-tool.js";
import type { Button, Display, ReadyCheck, ScreenPoint, ScrollDirection } from "../protocol/computer.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { SkillGetResult } from "../protocol/skill.js";
import { Computer } from "./computer.js";
import { DataPlane } from "./data-plane.js";
import { CALL_DEADLINE_MS } from "./deadline.js";
import { Commands } from "./exec.js";
import { computerExtensions } from "./extensions/list.js";
import { checkFeatures } from "./features.js";
import type { InputTurn } from "./input-queue.js";
import type { SupportedKeys } from "./keys.js";
import type { ComputerLog } from "./log.js";
import { type Capture, type Delivered, type Delivery, type Groups, groupsOf, type PlannedInput } from "./operations.js";
import type { SupportedPlatform } from "./platform.js";
import type { ComputerSession, RunningService, ServiceSpec } from "./session.js";
import type { ComputerSettings } from "./settings.js";
import { ComputerSkill, type KnownFault, type PackFile } from "./skill.js";
import { computerTools } from "./tools/list.js";

/** What a driver is built with. */
export interface DriverOptions {
  readonly session: ComputerSession;
  readonly settings: ComputerSettings;
  readonly log: ComputerLog;
  /** The command lines that the desktop starts with, for the computer's skill. */
  readonly apps?: readonly string[];
  /** How long a call may take in all, in milliseconds; below what the transport waits. Default 110,000. */
  readonly callDeadlineMs?: number;
}

/**
 * The base of every computer. A subclass does the seven operations below, and may implement PointerGroup, KeyboardGroup and
 * SetsDisplay; all of computer/v1 is made of them here. Points are screen pixels, keys W3C key values in W3C case, and every
 * argument is checked before an operation is called.
 *
 * An operation refuses with an AgentEnvError, such as `unsupported`. Anything else that an input operation throws is answered
 * as `delivery_failed`, applied unknown, and by a read as `internal`. Input operations run one at a time. An operation stops
 * when its signal is aborted; one that can't must not settle before it is done, or say so with `delivery.outlast`.
 */
export abstract class ComputerDriver extends Environment {
  protected readonly session: ComputerSession;
  protected readonly log: ComputerLog;
  readonly #computer: Computer;
  readonly #commands: Commands;
  readonly #data: DataPlane;
  readonly #apps: readonly string[];
  #application: Mounted | undefined;
  #skill: ComputerSkill | undefined;

  /** Throws a SetupError for half a group. */
  constructor({ session, settings, log, apps = [], callDeadlineMs = CALL_DEADLINE_MS }: DriverOptions) {
    super();
    this.#apps = apps;
    this.session = session;
    this.log = log;
    this.#computer = new Computer(this, groupsOf(this), { ...settings }, log, callDeadlineMs, async () =>
      session.clicksPassedOn?.(),
    );
    this.#commands = new Commands(session.user, () => this.settings, log);
    this.#data = new DataPlane(session.user, () => this.settings.data_paths);
  }

  /** The display as it is now. */
  abstract display(signal: AbortSignal): Promise<Display>;

  /** The whole display, `round(width * scale)` by `round(height * scale)` pixels. */
  abstract capture(signal: AbortSignal): Promise<Capture>;

  /** Presses and releases `button` at `point` `count` times, with `modifiers` down. */
  abstract click(
    point: ScreenPoint,
    button: Button,
    count: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Delivered;

  /** Presses `button` at the first point, moves through the path in about `durationMs`, and releases at the last. */
  abstract drag(
    path: readonly ScreenPoint[],
    button: Button,
    durationMs: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Delivered;

  /** Moves the view of what is under `point` by `amount` wheel steps. */
  abstract scroll(
    point: ScreenPoint,
    direction: ScrollDirection,
    amount: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Delivered;

  /**
   * Types `text` into what has the keyboard focus; `\n` is Enter and `\t` Tab. Text that can't be typed whole is refused
   * before anything is typed; the clipboard stays as it is.
   */
  abstract typeText(text: string, signal: AbortSignal, delivery: Delivery): Delivered;

  /** Presses the keys in order and releases them in reverse. */
  abstract press(chord: readonly string[], signal: AbortSignal, delivery: Delivery): Delivered;

  get buttons(): readonly Button[] {
    return ["left"];
  }

  get maxClickCount(): number {
    return 1;
  }

  /** `all` for every W3C key, or those that it can press, in W3C case. */
  get keys(): SupportedKeys {
    return "all";
  }

  /** In characters. */
  get maxTextLength(): number {
    return 10_000;
  }

  get maxWaitMs(): number {
    return 60_000;
  }

  get maxDragPoints(): number {
    return 2;
  }

  get maxDurationMs(): number {
    return 10_000;
  }

  get maxKeyRepeat(): number {
    return 100;
  }

  get maxScrollAmount(): number {
    return 100;
  }

  /** What `computer-display`'s `set` takes; with `setDisplay` only. */
  get displayModes(): readonly (readonly [width: number, height: number])[] {
    return [];
  }

  get layouts(): readonly string[] {
    return ["us"];
  }

  /** The platforms that the driver is made for. */
  get supports(): readonly SupportedPlatform[] {
    return [];
  }

  /** About how long an input takes; one that takes longer than 100 s is refused before anything is sent. */
  estimateMs(input: PlannedInput): number {
    const { tap_hold_ms, type_delay_ms } = this.settings;
    switch (input.kind) {
      case "drag":
        return input.durationMs;
      case "hold":
        return input.holdMs;
      case "type":
        return this.groups.keyboard === undefined ? 0 : input.characters * (tap_hold_ms + type_delay_ms);
      case "press":
        return this.groups.keyboard === undefined ? 0 : input.repeat * tap_hold_ms;
      default:
        return 0;
    }
  }

  /**
   * Called once, before anything is asked of the driver: checks what it can't do without, and reads what it serves. Throws a
   * SetupError.
   */
  async prepare(): Promise<void> {}

  /** The socket of the driver's own service, for whoever looks from outside. */
  get socketPath(): string | undefined {
    return undefined;
  }

  /** Long-running programs that the desktop starts for the driver, in this order. */
  services(): ServiceSpec[] {
    return [];
  }

  /** Called once the desktop starts the driver's services: how each is, and how to restart it. */
  started(_service: (name: string) => RunningService): void {}

  /** Checks of what can go away while the computer runs: cheap ones, run whenever somebody asks. They send no input. */
  async readyChecks(_signal: AbortSignal): Promise<ReadyCheck[]> {
    return [];
  }

  /** The driver's other checks, run with that of the capture until all have passed once. They send no input. */
  async startChecks(_signal: AbortSignal): Promise<ReadyCheck[]> {
    return [];
  }

  /** The files of a skill that comes with the driver: its text leads the computer's skill, its other files lie beside it. */
  bundledSkill(): readonly PackFile[] | Promise<readonly PackFile[]> {
    return [];
  }

  /** What its tools are measured to answer wrongly at the version that runs, for the computer's skill. */
  get knownFaults(): readonly KnownFault[] {
    return [];
  }

  /** How this computer is used: the driver's own skill and ours, with what holds for this one alone. */
  override async skill(): Promise<SkillGetResult> {
    const { displaySize } = this.session;
    const { buttons, maxClickCount, maxDragPoints, maxTextLength, keys, environmentVersion, knownFaults } = this;
    this.#skill = new ComputerSkill(await this.bundledSkill(), {
      ...{ displaySize, apps: this.#apps, buttons, maxClickCount, maxDragPoints, maxTextLength, keys },
      ...{ driverVersion: environmentVersion, faults: knownFaults },
    });
    return this.#skill.for([]);
  }

  override skillFor(skill: SkillGetResult, allows: (tool: string) => boolean): SkillGetResult {
    const names = this.#application?.tools.map(({ definition }) => definition.name) ?? [];
    return this.#skill?.for(names.filter(allows)) ?? skill;
  }

  /** The settings as they are now; the framework's extensions change some of them. */
  get settings(): Readonly<ComputerSettings> {
    return this.#computer.settings;
  }

  /** What the driver has beside the seven operations. */
  get groups(): Groups {
    return this.#computer.groups;
  }

  /**
   * Runs `run` in a turn of the input queue, for forwarded tools that use the shared pointer or keyboard. Throws `input_busy`,
   * `limit_exceeded`, or `timeout` for a wait that was given up, each with nothing sent.
   */
  inputTurn<T>(caller: Caller, signal: AbortSignal, run: (turn: InputTurn) => Promise<T>): Promise<T> {
    const waitMs = Math.min(this.settings.queue_wait_s * 1000, this.#computer.callDeadlineMs);
    return this.#computer.queue.turn(caller, signal, waitMs, async (turn) => {
      // Which of them press keys isn't known here, and neither is which of them click.
      await this.#computer.clicksPassedOn();
      this.#computer.clicked();
      return run(turn);
    });
  }

  /** Counts one input of `caller` as delivered, for forwarded tools that change something without taking a turn. */
  inputDelivered(caller: Caller): void {
    this.#computer.queue.count(caller);
  }

  override mounted(application: Mounted): void {
    this.#application = application;
  }

  override tools(): ServedTool[] {
    checkFeatures(this, this.#computer.settings);
    return computerTools(this.#computer);
  }

  override extensions(): ServedExtension[] {
    return computerExtensions(this.#computer, this.#commands, () => this.#application);
  }

  @addData
  async addComputerData(parts: Part[]): Promise<void> {
    await this.#data.add(parts);
  }

  @getData
  async getComputerData(params: GetDataParams): Promise<Part[]> {
    return await this.#data.get(params);
  }

  /** Ready while every check passes: all of them until they have passed once, then those of what can go away. */
  override async readiness(): Promise<Readiness> {
    const failed = (await this.#computer.ready.together()).filter((check) => !check.ok);
    return { ready: failed.length === 0, reasons: failed.map((check) => `${check.name}: ${check.detail}`) };
  }

  /** Started once every check has passed. */
  override async startup(): Promise<Readiness> {
    return this.#computer.ready.passed ? { ready: true, reasons: [] } : this.readiness();
  }

  /** Kills the commands that run, releases what is held down. Idempotent. A driver's own `close` calls it first. */
  override async close(): Promise<void> {
    await Promise.all([this.#computer.close(), this.#commands.close()]);
  }
}
