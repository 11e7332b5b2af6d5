import type { Delivery } from "../../src/computer/operations.js";
import type { Button, ScreenPoint, ScrollDirection } from "../../src/protocol/computer.js";
import { dragSteps } from "./drag-path.js";
import type { Hand } from "./hand.js";
import type { Input } from "./input.js";
import type { Keyboard } from "./keyboard.js";
import type { Layout } from "./spare-keys.js";

/** X's numbers of the buttons, and of the wheel's steps. */
const BUTTONS: Readonly<Record<Button, number>> = { left: 1, middle: 2, right: 3, back: 8, forward: 9 };
const WHEEL: Readonly<Record<ScrollDirection, number>> = { up: 4, down: 5, left: 6, right: 7 };
/** Between the clicks of a double or triple click. */
const CLICK_GAP_MS = 10;

/** The pointer: clicks, drags and the wheel, with modifiers held or without. */
export class Pointer {
  constructor(
    private readonly input: Input,
    private readonly keyboard: Keyboard,
  ) {}

  click(
    { x, y }: ScreenPoint,
    button: Button,
    count: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#with(modifiers, signal, delivery, async (hand) => {
      await hand.move(x, y);
      for (let clicked = 0; clicked < count; clicked += 1) {
        if (clicked > 0) await hand.pause(CLICK_GAP_MS);
        await hand.pressButton(BUTTONS[button]);
        await hand.releaseButton(BUTTONS[button]);
      }
    });
  }

  drag(
    path: readonly ScreenPoint[],
    button: Button,
    durationMs: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    const [start] = path as [ScreenPoint];
    return this.#with(modifiers, signal, delivery, async (hand) => {
      await hand.move(start.x, start.y);
      await hand.pressButton(BUTTONS[button]);
      const begun = performance.now();
      for (const { x, y, atMs } of dragSteps(path, durationMs)) {
        await hand.pause(begun + atMs - performance.now());
        await hand.move(x, y);
      }
      await hand.releaseButton(BUTTONS[button]);
    });
  }

  scroll(
    { x, y }: ScreenPoint,
    direction: ScrollDirection,
    amount: number,
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
  ): Promise<void> {
    return this.#with(modifiers, signal, delivery, async (hand) => {
      await hand.move(x, y);
      for (let step = 0; step < amount; step += 1) {
        await hand.pressButton(WHEEL[direction]);
        await hand.releaseButton(WHEEL[direction]);
      }
    });
  }

  move({ x, y }: ScreenPoint, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#with([], signal, delivery, (hand) => hand.move(x, y));
  }

  press(button: Button, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#with([], signal, delivery, async (hand) => {
      await hand.pressButton(BUTTONS[button]);
      hand.keep([], BUTTONS[button]);
    });
  }

  release(button: Button, signal: AbortSignal, delivery: Delivery): Promise<void> {
    return this.#with([], signal, delivery, (hand) => hand.releaseButton(BUTTONS[button]));
  }

  #with(
    modifiers: readonly string[],
    signal: AbortSignal,
    delivery: Delivery,
    act: (hand: Hand) => Promise<void>,
  ): Promise<void> {
    return this.input.perform(signal, delivery, {
      keys: modifiers.length > 0,
      clicks: true,
      prepare: (_session, layout: Layout) => this.keyboard.check(modifiers, layout),
      act: (hand, _prepared, layout) => this.keyboard.around(hand, layout, modifiers, () => act(hand)),
    });
  }
}
