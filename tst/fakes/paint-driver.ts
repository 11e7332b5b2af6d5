import { ComputerDriver } from "../../src/computer/driver.js";
import type { Capture, Delivery, KeyboardGroup, PointerGroup, SetsDisplay } from "../../src/computer/operations.js";
import type { Button, Display, Effect, ScreenPoint, ScrollDirection } from "../../src/protocol/computer.js";

type Rgb = readonly [number, number, number];

/**
 * A driver of a screen that is memory: each pixel shows its own place, a click paints its pixel, and every input is written
 * down in the order in which it came. Tests replace `before` to make an operation slow, or to make it fail.
 */
export class PaintDriver extends ComputerDriver {
  readonly inputs: unknown[][] = [];
  captures = 0;
  screen: Display = { width: 64, height: 48, scale: 1 };
  pointerAt: ScreenPoint = { x: 7, y: 9 };
  /** Runs at the start of each operation, reads included. */
  before: (operation: string, signal: AbortSignal, delivery?: Delivery) => Promise<void> = async () => {};
  /** What every input answers. */
  effect: Effect | undefined;
  #painted = new Map<string, Rgb>();

  override get maxClickCount(): number {
    return 3;
  }

  override get buttons(): readonly Button[] {
    return ["left", "right"];
  }

  override get maxDragPoints(): number {
    return 5;
  }

  async display(signal: AbortSignal): Promise<Display> {
    await this.before("display", signal);
    return this.screen;
  }

  async capture(signal: AbortSignal): Promise<Capture> {
    await this.before("capture", signal);
    this.captures += 1;
    const width = Math.round(this.screen.width * this.screen.scale);
    const height = Math.round(this.screen.height * this.screen.scale);
    const raw = Buffer.alloc(width * height * 4);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const [red, green, blue] = this.#painted.get(`${x},${y}`) ?? [x & 255, y & 255, ((x >> 8) << 4) | (y >> 8)];
        raw.set([blue, green, red, 0], (y * width + x) * 4);
      }
    }
    return { raw, layout: "BGRX", width, height };
  }

  async click(
    point: ScreenPoint,
    button: Button,
    count: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<Effect | undefined> {
    return this.#did("click", [point, button, count, modifiers], signal, delivery, () => {
      this.#painted.set(`${point.x},${point.y}`, [255, 0, 0]);
    });
  }

  async drag(
    path: readonly ScreenPoint[],
    button: Button,
    durationMs: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<Effect | undefined> {
    return this.#did("drag", [path, button, durationMs, modifiers], signal, delivery);
  }

  async scroll(
    point: ScreenPoint,
    direction: ScrollDirection,
    amount: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<Effect | undefined> {
    return this.#did("scroll", [point, direction, amount, modifiers], signal, delivery);
  }

  async typeText(text: string, signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    return this.#did("type", [text], signal, delivery);
  }

  async press(chord: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    return this.#did("press", [chord], signal, delivery);
  }

  protected did(operation: string, args: unknown[], signal: AbortSignal, delivery: Delivery) {
    return this.#did(operation, args, signal, delivery);
  }

  async #did(
    operation: string,
    args: unknown[],
    signal: AbortSignal,
    delivery: Delivery,
    then: () => void = () => {},
  ): Promise<Effect | undefined> {
    await this.before(operation, signal, delivery);
    this.inputs.push([operation, ...args]);
    then();
    return this.effect;
  }
}

/** The same with both groups, and a display that can be set. */
export class FullPaintDriver extends PaintDriver implements PointerGroup, KeyboardGroup, SetsDisplay {
  readonly down = new Set<string>();

  override get displayModes(): readonly (readonly [number, number])[] {
    return [
      [64, 48],
      [32, 24],
    ];
  }

  override get layouts(): readonly string[] {
    return ["us", "de"];
  }

  async pointerMove(point: ScreenPoint, signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    const effect = await this.did("move", [point], signal, delivery);
    this.pointerAt = point;
    return effect;
  }

  async pointerDown(button: Button, signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    return this.did("button down", [button], signal, delivery);
  }

  async pointerUp(button: Button, signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    return this.did("button up", [button], signal, delivery);
  }

  async pointerPosition(signal: AbortSignal): Promise<ScreenPoint> {
    await this.before("position", signal);
    return this.pointerAt;
  }

  async keyDown(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    const effect = await this.did("key down", [keys], signal, delivery);
    for (const key of keys) this.down.add(key);
    return effect;
  }

  async keyUp(keys: readonly string[], signal: AbortSignal, delivery: Delivery): Promise<Effect | undefined> {
    const effect = await this.did("key up", [keys], signal, delivery);
    for (const key of keys) this.down.delete(key);
    return effect;
  }

  async setDisplay(display: Display, signal: AbortSignal): Promise<Display> {
    await this.before("set display", signal);
    this.screen = display;
    return display;
  }
}
