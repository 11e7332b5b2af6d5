import { createRequire } from "node:module";

/** Keys to hold, and the key or button that is then pressed and released, by X's numbers. */
export type Press = { readonly hold: readonly number[] } & ({ readonly key: number } | { readonly button: number });

interface Client {
  AllocID(): number;
  CreateWindow(...args: unknown[]): void;
  MapWindow(window: number): void;
  SetInputFocus(window: number, revertTo: number): void;
  require(name: "xtest", done: (error: unknown, test: XTest) => void): void;
  on(event: "event", listener: (event: { name: string; keycode: number; wid: number }) => void): void;
  on(event: "error", listener: (error: unknown) => void): void;
  sync(): Promise<void>;
  stream: { destroy(): void };
}
interface XTest {
  FakeInput(type: number, detail: number, time: number, window: number, x: number, y: number): void;
}

const KEY = { press: 2, release: 3 };
const BUTTON = { press: 4, release: 5 };
const MOTION = 6;

/**
 * Opens a window as a program does, presses in it what is asked for, one after the other, and answers what arrived there, the
 * held keys themselves left out.
 */
export async function pressInWindow(display: string, presses: readonly Press[]): Promise<string[]> {
  const x11 = createRequire(import.meta.url)("x11") as {
    createClient(
      options: object,
      done: (error: unknown, display: { client: Client; screen: { root: number }[] }) => void,
    ): void;
    eventMask: Record<string, number>;
  };
  const { client, screen } = await new Promise<{ client: Client; screen: { root: number }[] }>((resolve, reject) =>
    x11.createClient({ display, shm: false }, (error, opened) => (error ? reject(error) : resolve(opened))),
  );
  try {
    const root = screen[0]?.root ?? 0;
    const test = await new Promise<XTest>((resolve, reject) =>
      client.require("xtest", (error, found) => (error ? reject(error) : resolve(found))),
    );
    const window = client.AllocID();
    const { KeyPress = 0, ButtonPress = 0, Exposure = 0 } = x11.eventMask;
    const seen: string[] = [];
    const exposed = new Promise<void>((resolve) =>
      client.on("event", ({ name, keycode }) => {
        if (name === "Expose") resolve();
        if (name === "KeyPress") seen.push(`key ${keycode}`);
        if (name === "ButtonPress") seen.push(`button ${keycode}`);
      }),
    );
    client.on("error", () => {});
    client.CreateWindow(window, root, 0, 0, 400, 300, 0, 0, 0, 0, { eventMask: KeyPress | ButtonPress | Exposure });
    client.MapWindow(window);
    await exposed;
    client.SetInputFocus(window, 0);
    test.FakeInput(MOTION, 0, 0, root, 320, 240);
    await client.sync();
    const held = new Set(presses.flatMap(({ hold }) => hold));
    for (const press of presses) {
      for (const key of press.hold) test.FakeInput(KEY.press, key, 0, root, 0, 0);
      const [kind, detail] = "key" in press ? [KEY, press.key] : [BUTTON, press.button];
      test.FakeInput(kind.press, detail, 0, root, 0, 0);
      test.FakeInput(kind.release, detail, 0, root, 0, 0);
      for (const key of press.hold) test.FakeInput(KEY.release, key, 0, root, 0, 0);
      await client.sync();
      // What the window manager holds back is let go by it a moment later.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await client.sync();
    return seen.filter((one) => ![...held].some((key) => one === `key ${key}`));
  } finally {
    client.stream.destroy();
  }
}
