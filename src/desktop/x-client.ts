import { createRequire } from "node:module";
import { messageOf, SetupError } from "../errors.js";
import { isErrno } from "./trees.js";

/** What is used here of the package `x11`, which has no types. */
interface X11 {
  createClient(
    options: { display: string; shm: false; disableBigRequests: true },
    done: (error: Error | undefined, display: XDisplay) => void,
  ): XClient;
}
interface XDisplay {
  readonly screen: readonly { root: number; pixel_width: number; pixel_height: number }[];
}
interface XClient {
  atoms: Record<string, number>;
  readonly stream?: { destroy(): void };
  on(event: "error" | "end", listener: (error?: Error) => void): this;
  InternAtom(onlyIfExists: boolean, name: string, done: (error: Error | null, atom: number) => void): void;
  GetProperty(
    remove: 0,
    window: number,
    property: number,
    type: 0,
    offset: number,
    length: number,
    done: (error: Error | null, value: { type: number }) => void,
  ): void;
  QueryKeymap(done: (error: Error | null, keys: Buffer) => void): void;
  QueryPointer(window: number, done: (error: Error | null, pointer: { keyMask: number }) => void): void;
  require(name: "xtest", done: (error: Error | undefined, test: XTest) => void): void;
}
interface XTest {
  readonly KeyRelease: number;
  readonly ButtonRelease: number;
  FakeInput(type: number, detail: number, time: number, window: number, x: number, y: number): void;
}

const ANSWER_MS = 3000;

export interface AnsweringDisplay {
  readonly width: number;
  readonly height: number;
  readonly hasWindowManager: boolean;
}

/**
 * Asks the X server of a display, such as `:5`. Undefined when none answers there; one that refuses us is a SetupError.
 */
export async function askDisplay(name: string): Promise<AnsweringDisplay | undefined> {
  try {
    return await withClient(name, async (client, display) => {
      const screen = display.screen[0];
      if (screen === undefined) throw new Error("it has no screen");
      return {
        width: screen.pixel_width,
        height: screen.pixel_height,
        hasWindowManager: await hasWindowManager(client, screen.root),
      };
    });
  } catch (thrown) {
    if (isErrno(thrown, "ENOENT", "ECONNREFUSED", "EADDRNOTAVAIL")) return undefined;
    throw new SetupError(`the X server of display ${name} can't be used: ${messageOf(thrown)}`, {
      hint: "let this user connect to it (xhost, XAUTHORITY), or name a display that is free",
      cause: thrown,
    });
  }
}

/** Keycodes and button numbers. */
export interface HeldInput {
  readonly keys: readonly number[];
  readonly buttons: readonly number[];
}

/**
 * Releases every key and button that is down on a display, and says which: what a program that died in the middle of its
 * input left down would swallow the next press, or repeat without end. Rejects when the X server doesn't answer.
 */
export function releaseInput(name: string): Promise<HeldInput> {
  return withClient(name, async (client, display) => {
    const root = display.screen[0]?.root ?? 0;
    const test = await answerOf<XTest>((done) => client.require("xtest", done));
    const keymap = await answerOf<Buffer>((done) => client.QueryKeymap(done));
    const { keyMask } = await answerOf<{ keyMask: number }>((done) => client.QueryPointer(root, done));
    const isDown = (keycode: number) => (((keymap[keycode >> 3] ?? 0) >> (keycode & 7)) & 1) === 1;
    const keys = Array.from({ length: 256 }, (_, keycode) => keycode).filter(isDown);
    const buttons = [1, 2, 3, 4, 5].filter((button) => ((keyMask >> (7 + button)) & 1) === 1);
    for (const keycode of keys) test.FakeInput(test.KeyRelease, keycode, 0, root, 0, 0);
    for (const button of buttons) test.FakeInput(test.ButtonRelease, button, 0, root, 0, 0);
    // Once this is answered the server has done what came before it.
    await answerOf((done) => client.QueryPointer(root, done));
    return { keys, buttons };
  });
}

function answerOf<T>(ask: (done: (error: Error | null | undefined, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => ask((error, value) => (error ? reject(error) : resolve(value))));
}

async function withClient<T>(name: string, use: (client: XClient, display: XDisplay) => Promise<T>): Promise<T> {
  // Loaded when it is needed, which is seldom: it costs 10 ms.
  const x11 = createRequire(import.meta.url)("x11") as X11;
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => {});
  const late = setTimeout(() => broken.reject(new Error(`it did not answer within ${ANSWER_MS} ms`)), ANSWER_MS);
  let client: XClient | undefined;
  try {
    const connected = new Promise<XDisplay>((resolve, reject) => {
      client = x11.createClient({ display: name, shm: false, disableBigRequests: true }, (error, display) =>
        error ? reject(error) : resolve(display),
      );
      client.on("error", (error) => broken.reject(error));
      client.on("end", () => broken.reject(new Error("it closed the connection")));
    });
    const display = await Promise.race([connected, broken.promise]);
    const opened = client as unknown as XClient;
    // The package keeps the atoms of all its connections in one table, though each X server numbers its own.
    opened.atoms = {};
    return await Promise.race([use(opened, display), broken.promise]);
  } finally {
    clearTimeout(late);
    client?.stream?.destroy();
  }
}

/** As the Extended Window Manager Hints have it: the root window names the window manager's own window. */
async function hasWindowManager(client: XClient, root: number): Promise<boolean> {
  const atom = await answerOf<number>((done) => client.InternAtom(false, "_NET_SUPPORTING_WM_CHECK", done));
  const property = await answerOf<{ type: number }>((done) => client.GetProperty(0, root, atom, 0, 0, 1, done));
  return property.type !== 0;
}
