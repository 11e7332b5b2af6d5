import { createRequire } from "node:module";
import { until } from "./until.js";

// The package has no types; what tests ask of it is as various as X itself.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any;

const x11 = createRequire(import.meta.url)("x11") as Untyped;

/** What reached a window. */
export interface Received {
  readonly kind: "key down" | "key up" | "button down" | "button up" | "motion";
  /** The keycode, or the button. */
  readonly detail: number;
  /** The modifiers and buttons that were down before it. */
  readonly state: number;
  readonly x: number;
  readonly y: number;
}

export const KINDS = new Map<string, Received["kind"]>([
  ["KeyPress", "key down"],
  ["KeyRelease", "key up"],
  ["ButtonPress", "button down"],
  ["ButtonRelease", "button up"],
  ["MotionNotify", "motion"],
]);
/** Keys, buttons and motions. */
const INPUT_MASK = 0x4f;

/** A client of an X server that a test looks and acts with, as an application or from outside. */
export class XTestClient implements Disposable {
  private constructor(
    readonly client: Untyped,
    readonly root: number,
  ) {}

  static async open(display: string): Promise<XTestClient> {
    const opened = await new Promise<Untyped>((resolve, reject) => {
      x11.createClient({ display, shm: false }, (error: Error | undefined, found: unknown) =>
        error ? reject(error) : resolve(found),
      );
    });
    opened.client.on("error", () => {});
    return new XTestClient(opened.client, opened.screen[0].root);
  }

  ask(request: string, ...args: unknown[]): Promise<Untyped> {
    return new Promise((resolve, reject) => {
      this.client[request](...args, (error: Error | null, value: unknown) => {
        if (error) reject(error);
        else resolve(value);
        return true;
      });
    });
  }

  extension(name: string): Promise<Untyped> {
    return this.ask("require", name);
  }

  sync(): Promise<unknown> {
    return this.ask("GetInputFocus");
  }

  /** The keycodes that are down. */
  async keysDown(): Promise<number[]> {
    const bits = (await this.ask("QueryKeymap")) as Buffer;
    return Array.from({ length: 256 }, (_, code) => code).filter((code) => ((bits[code >> 3] ?? 0) >> (code & 7)) & 1);
  }

  /** The buttons 1 to 5 that are down, as bits. */
  async buttonsDown(): Promise<number> {
    return ((await this.ask("QueryPointer", this.root)).keyMask >> 8) & 0x1f;
  }

  /** A keycode's first keysym. */
  async keysym(keycode: number): Promise<number> {
    return (await this.ask("GetKeyboardMapping", keycode, 1))[0][0];
  }

  /** A window over the whole screen, in front of all and with the keyboard focus, that writes down what reaches it. */
  async window(): Promise<XTestWindow> {
    const id = this.client.AllocID();
    const values = { eventMask: INPUT_MASK, overrideRedirect: true, backgroundPixel: 0x203040 };
    this.client.CreateWindow(id, this.root, 0, 0, 1280, 800, 0, 0, 0, 0, values);
    this.client.MapWindow(id);
    await this.sync();
    this.client.SetInputFocus(id, 1);
    await this.sync();
    return new XTestWindow(this, id);
  }

  [Symbol.dispose](): void {
    this.client.stream.destroy();
  }
}

export class XTestWindow {
  readonly received: Received[] = [];

  constructor(
    readonly x: XTestClient,
    readonly id: number,
  ) {
    x.client.on("event", (event: Untyped) => {
      const kind = KINDS.get(event.name);
      if (kind === undefined || event.wid !== id) return;
      this.received.push({
        kind,
        detail: event.keycode ?? 0,
        state: event.buttons,
        x: event.rootx ?? event.x,
        y: event.rooty ?? event.y,
      });
    });
  }

  /** What has come once a round trip is over, without motions unless they are wanted; forgotten then. */
  async take(motions = false): Promise<Received[]> {
    await this.x.sync();
    return this.received.splice(0).filter(({ kind }) => motions || kind !== "motion");
  }

  /** Waits until so many presses have come. */
  async presses(count: number): Promise<void> {
    await until(
      () => this.received.filter(({ kind }) => kind.endsWith("down")).length,
      (seen) => seen >= count,
      { what: `${count} presses` },
    );
  }
}
