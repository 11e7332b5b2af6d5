import { ComputerDriver, type DriverOptions } from "../../src/computer/driver.js";
import type { Capture, Delivery, KeyboardGroup, PointerGroup, SetsDisplay } from "../../src/computer/operations.js";
import type { SupportedPlatform } from "../../src/computer/platform.js";
import { messageOf, SetupError } from "../../src/errors.js";
import type { Button, Display, ReadyCheck, ScreenPoint, ScrollDirection } from "../../src/protocol/computer.js";
import { Input } from "./input.js";
import { InputSession } from "./input-session.js";
import { Keyboard } from "./keyboard.js";
import { Link } from "./link.js";
import { displayModes, type Mode, setDisplayMode } from "./modes.js";
import { Pointer } from "./pointer.js";
import { Screen } from "./screen.js";

/** A computer whose driver is this package: XTEST for input, the X server's own pixels for captures. */
export class ReferenceDriver extends ComputerDriver implements PointerGroup, KeyboardGroup, SetsDisplay {
  readonly #link: Link<InputSession>;
  readonly #input: Input;
  readonly #keyboard: Keyboard;
  readonly #pointer: Pointer;
  readonly #screen: Screen;
  #modes: readonly Mode[] = [];

  constructor(options: DriverOptions) {
    super(options);
    const { display } = this.session;
    this.#link = new Link(() => InputSession.open(display, this.log));
    this.#input = new Input(this.#link, this.log);
    this.#keyboard = new Keyboard(
      this.#input,
      () => this.settings,
      async () => this.session.inputSettled?.(),
    );
    this.#pointer = new Pointer(this.#input, this.#keyboard);
    this.#screen = new Screen(display, this.log);
  }

  /** Refuses a display whose server lacks XTEST or XKEYBOARD, and reads which modes it has. */
  override async prepare(): Promise<void> {
    try {
      this.#modes = await this.#link.read(displayModes);
    } catch (thrown) {
      throw new SetupError(`the X server of ${this.session.display} can't be driven: ${messageOf(thrown)}`, {
        hint: "the reference driver needs an X server with the extensions XTEST and XKEYBOARD",
        cause: thrown,
      });
    }
  }

  override get buttons(): readonly Button[] {
    return ["left", "right", "middle", "back", "forward"];
  }

  override get maxClickCount(): number {
    return 3;
  }

  override get maxDragPoints(): number {
    return 50;
  }

  override get displayModes(): readonly Mode[] {
    return this.#modes;
  }

  override get supports(): readonly SupportedPlatform[] {
    return [{ os: { type: "linux", display: ["x11"] }, arch: ["amd64", "arm64"] }];
  }

  override async readyChecks(signal: AbortSignal): Promise<ReadyCheck[]> {
    const { x, y } = await this.pointerPosition(signal);
    return [{ name: "input", ok: true, detail: `XTEST, the pointer at (${x}, ${y})` }];
  }

  override async display(_signal: AbortSignal): Promise<Display> {
    return { ...(await this.#link.read((session) => session.screenSize())), scale: 1 };
  }

  async setDisplay(display: Display, _signal: AbortSignal): Promise<Display> {
    const session = await this.#link.read(async (each) => {
      await each.connection.sync();
      return each;
    });
    return setDisplayMode(session, display);
  }

  override capture(_signal: AbortSignal): Promise<Capture> {
    return this.#screen.capture();
  }

  override click(
    point: ScreenPoint,
    button: Button,
    count: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#pointer.click(point, button, count, modifiers, signal, delivery);
  }

  override drag(
    path: readonly ScreenPoint[],
    button: Button,
    durationMs: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#pointer.drag(path, button, durationMs, modifiers, signal, delivery);
  }

  override scroll(
    point: ScreenPoint,
    direction: ScrollDirection,
    amount: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#pointer.scroll(point, direction, amount, modifiers, signal, delivery);
  }

  override typeText(text: string, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#keyboard.type(text, signal, delivery);
  }

  override press(chord: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#keyboard.press(chord, signal, delivery);
  }

  pointerMove(point: ScreenPoint, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#pointer.move(point, signal, delivery);
  }

  pointerDown(button: Button, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#pointer.press(button, signal, delivery);
  }

  pointerUp(button: Button, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#pointer.release(button, signal, delivery);
  }

  async pointerPosition(_signal: AbortSignal): Promise<ScreenPoint> {
    const { rootX, rootY } = await this.#link.read((session) => session.pointer());
    return { x: rootX, y: rootY };
  }

  keyDown(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#keyboard.hold(keys, signal, delivery);
  }

  keyUp(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#keyboard.release(keys, signal, delivery);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#keyboard.restore().catch((err: unknown) => this.log.debug({ err }, "the keymap stays as it is"));
    await Promise.all([this.#link.close(), this.#screen.close()]);
  }
}
