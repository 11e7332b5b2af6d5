import type { Caller } from "../environment/caller.js";
import { AgentEnvError, type Applied, messageOf } from "../errors.js";
import { type Button, Display, type ReadyCheck, ScreenPoint } from "../protocol/computer.js";
import { CALL_DEADLINE_MS, cancelled, Deadline, settledWithin } from "./deadline.js";
import type { ComputerDriver } from "./driver.js";
import { displayText, type Frame, FrameStore } from "./frames.js";
import { Held } from "./held.js";
import { type Picture, PictureCache } from "./images.js";
import { InputQueue } from "./input-queue.js";
import type { ComputerLog } from "./log.js";
import type { Groups, KeyboardGroup, PointerGroup } from "./operations.js";
import { Ready } from "./ready.js";
import type { ComputerSettings } from "./settings.js";
import type { PointSpace } from "./spaces.js";

/** Closing waits no longer than this for input that doesn't end, and for what is still held behind it. */
const CLOSE_MS = 1_000;
/** Releasing what a caller left behind goes on whoever went away, but not without end. */
const RELEASE_MS = 15_000;

/**
 * What the base class keeps for one driver, and the steps that its tools and extensions share: reads of the driver with a
 * deadline, frames, the input queue, what is held down, readiness.
 */
export class Computer {
  readonly frames = new FrameStore();
  readonly queue = new InputQueue();
  readonly keys: Held<string>;
  readonly buttons: Held<Button>;
  readonly ready: Ready;
  readonly #pictures = new PictureCache();

  constructor(
    readonly driver: ComputerDriver,
    readonly groups: Groups,
    /** Changed by the framework's extensions. */
    public settings: ComputerSettings,
    log: ComputerLog,
    /** How long a call may take in all. */
    readonly callDeadlineMs = CALL_DEADLINE_MS,
    /** Resolves once the clicks that were sent have been passed on by the window manager. */
    private readonly passedOn: () => Promise<void> = async () => {},
  ) {
    this.keys = new Held(
      "key",
      this.queue,
      log,
      (keys) => releasing(async (signal) => void (await this.#keyboard().keyUp(keys, signal, untold))),
      () => this.settings.max_hold_ms,
    );
    this.buttons = new Held(
      "button",
      this.queue,
      log,
      async (buttons) => {
        for (const button of buttons) {
          await releasing(async (signal) => void (await this.#pointer().pointerUp(button, signal, untold)));
        }
      },
      undefined,
    );
    this.ready = new Ready([
      { name: "display", again: true, run: async (signal) => [await this.#displayCheck(signal)] },
      { name: "capture", again: false, run: async (signal) => [await this.#captureCheck(signal)] },
      { name: "driver", again: true, run: (signal) => driver.readyChecks(signal) },
      { name: "driver", again: false, run: (signal) => driver.startChecks(signal) },
    ]);
  }

  #keyboard(): KeyboardGroup {
    if (this.groups.keyboard === undefined) throw new TypeError("the driver has no keyboard group");
    return this.groups.keyboard;
  }

  #pointer(): PointerGroup {
    if (this.groups.pointer === undefined) throw new TypeError("the driver has no pointer group");
    return this.groups.pointer;
  }

  /** Whether the window manager may have clicks that it hasn't passed on. */
  #clicked = false;

  /** Says that clicks are about to be sent. */
  clicked(): void {
    this.#clicked = true;
  }

  /** Says that no click is held back. */
  noClicksHeld(): void {
    this.#clicked = false;
  }

  /**
   * Resolves once the window manager has passed on the clicks that were sent before; never rejects. All input waits for it: a key
   * would reach its program ahead of the clicks, and a moved pointer would take them along.
   */
  async clicksPassedOn(): Promise<void> {
    if (!this.#clicked) return;
    this.#clicked = false;
    await this.passedOn();
  }

  /** Whether the last capture told the display's size, so that the next one is expected to. */
  #capturesTellDisplay = false;

  /** The space that a call's points are in where it names none. */
  get usualSpace(): PointSpace {
    return { space: this.settings.default_space, normScale: this.settings.default_norm_scale };
  }

  /**
   * What a read of the driver comes to. An AgentEnvError passes; past the deadline it is `timeout`, anything else that is
   * thrown `internal`, and nothing was applied.
   */
  read<T>(what: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#bounded(what, signal, "no", run);
  }

  /** The same for what changes something: past the deadline, or when something else is thrown, it may have been applied. */
  change<T>(what: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#bounded(what, signal, "unknown", run);
  }

  async #bounded<T>(
    what: string,
    signal: AbortSignal,
    applied: Applied,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (signal.aborted) throw cancelled();
    using deadline = new Deadline(signal, this.callDeadlineMs);
    try {
      return await deadline.bound(run(deadline.signal));
    } catch (thrown) {
      if (thrown instanceof AgentEnvError) throw thrown;
      if (deadline.passed) {
        throw new AgentEnvError("timeout", `${what} took longer than ${deadline.ms / 1000} s`, { applied });
      }
      if (signal.aborted && applied === "no") throw cancelled();
      throw new AgentEnvError("internal", `${what} failed: ${messageOf(thrown)}`, { applied, cause: thrown });
    }
  }

  display(signal: AbortSignal): Promise<Display> {
    return this.read("reading the display", signal, (own) => this.#display(own));
  }

  async #display(signal: AbortSignal): Promise<Display> {
    return checkedDisplay(await this.driver.display(signal));
  }

  /**
   * A new frame of the screen, the caller's latest from now on. What others deliver while it is taken counts as after it,
   * since the frame may not show it.
   */
  async capture(caller: Caller, signal: AbortSignal): Promise<Frame> {
    const inputs = this.queue.snapshot();
    const capturedAt = new Date();
    const { picture, display } = await this.read("the capture", signal, (own) => this.#capture(own));
    return this.frames.addCapture(caller, { picture, display, capturedAt, inputs });
  }

  async #capture(signal: AbortSignal): Promise<{ picture: Picture; display: Display }> {
    const before = this.#capturesTellDisplay ? undefined : await this.#display(signal);
    const capture = await this.driver.capture(signal);
    this.#capturesTellDisplay = capture.display !== undefined;
    const picture = this.#pictures.of(capture);
    const known = capture.display === undefined ? before : checkedDisplay(capture.display);
    if (known !== undefined && isNative(picture, known)) return { picture, display: known };
    // The display may have changed between the two reads; a capture that fits neither size is the driver's fault.
    const display = await this.#display(signal);
    const again = isNative(picture, display) ? picture : this.#pictures.of(await this.driver.capture(signal));
    if (isNative(again, display)) return { picture: again, display };
    throw new TypeError(`it is ${again.width}x${again.height} pixels, and the display is ${displayText(display)}`);
  }

  /** Where the pointer is on the screen. */
  pointer(signal: AbortSignal): Promise<ScreenPoint> {
    return this.read("reading the pointer", signal, async (own) => {
      const point = await this.#pointer().pointerPosition(own);
      return ScreenPoint.parse({ x: Math.floor(point.x), y: Math.floor(point.y) });
    });
  }

  async #displayCheck(signal: AbortSignal): Promise<ReadyCheck> {
    return { name: "display", ok: true, detail: displayText(await this.#display(signal)) };
  }

  async #captureCheck(signal: AbortSignal): Promise<ReadyCheck> {
    const { picture } = await this.#capture(signal);
    return { name: "capture", ok: true, detail: `${picture.width}x${picture.height} pixels` };
  }

  /** Releases what is held, where input that goes on lets it, and lets go of the frames. */
  async close(): Promise<void> {
    await settledWithin(CLOSE_MS, Promise.all([this.keys.close(), this.buttons.close()]));
    this.frames.clear();
  }
}

function checkedDisplay(display: Display): Display {
  const checked = Display.safeParse(display);
  if (!checked.success || display.width <= 0 || display.height <= 0 || !(display.scale > 0)) {
    throw new TypeError(`the driver says that the display is ${JSON.stringify(display)}`);
  }
  return display;
}

/** An image of the display at native resolution has this size. */
function isNative(picture: Picture, { width, height, scale }: Display): boolean {
  return picture.width === Math.round(width * scale) && picture.height === Math.round(height * scale);
}

const untold = { sent: () => {}, outlast: () => {}, held: { own: [], others: [] } };

async function releasing<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  using deadline = new Deadline(new AbortController().signal, RELEASE_MS);
  return await deadline.bound(run(deadline.signal));
}
