import { setTimeout as sleep } from "node:timers/promises";
import { AgentEnvError } from "../../src/errors.js";
import type { InputSession } from "./input-session.js";
import type { XEvent } from "./x11.js";

/** How long an application that answers pings may take to. */
const PONG_MS = 5_000;
/** How long a wait for a pong goes before the window is looked at again, which may be gone. */
const LOOK_AGAIN_MS = 100;
/** Of so many windows it is known what they were told; one that is told again is none the worse. */
const MOST_TOLD = 64;
const POINTER_ROOT = 1;
/** The core protocol's event of a changed keymap, and which part of it has changed: the keysyms. */
const MAPPING_NOTIFY = 34;
const KEYBOARD = 1;

interface Atoms {
  readonly protocols: number;
  readonly ping: number;
}

/**
 * Knows how far applications have come with their events. An application takes them in the order in which the server sent them,
 * so one that answers a ping (`_NET_WM_PING` of the Extended Window Manager Hints) is done with all that came before it: with new
 * keysyms of a key, and with presses of it, which it looks up on the keymap that the server has when it comes to them.
 */
export class Applications {
  #id = 0;
  #known: { session: InputSession; atoms: Atoms; answering: Set<number>; told: Map<number, number> } | undefined;

  /** The window that keys go to now, or the one around it that says that it answers pings. */
  async focused(session: InputSession): Promise<number | undefined> {
    const { connection } = session;
    const { atoms } = await this.#knownOf(session);
    const { focus } = await connection.ask<{ focus: number }>((done) => connection.client.GetInputFocus(done));
    const window = focus === POINTER_ROOT ? await windowUnderPointer(session) : focus;
    if (window === undefined || window === 0 || window === connection.root) return undefined;
    return (await pingedAround(session, atoms, window)) ?? window;
  }

  /**
   * Resolves once the applications of `windows` are done with all that was sent to them until now. One that doesn't say that it
   * answers pings, and never has, is given `blindMs`. Throws `delivery_failed` where another doesn't go on.
   */
  async caughtUp(
    session: InputSession,
    windows: Iterable<number>,
    blindMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    await Promise.all([...windows].map((window) => this.#caughtUp(session, window, blindMs, signal)));
  }

  /**
   * Tells the application of `window` that the keymap has changed, where it has since it was told last. The server's own events
   * of it are not enough for all: Chromium reads the keymap once and never again, unless the core protocol's event comes, which
   * the server sends to no program that knows XKB. What a page is told of a key comes from there.
   */
  async tellOfKeymap(session: InputSession, window: number): Promise<void> {
    const { connection, keymapVersion } = session;
    const { told } = await this.#knownOf(session);
    if (told.get(window) === keymapVersion) return;
    told.delete(window);
    told.set(window, keymapVersion);
    const [oldest] = told.keys();
    if (told.size > MOST_TOLD && oldest !== undefined) told.delete(oldest);
    const { min_keycode, max_keycode } = connection.display;
    const event = Buffer.alloc(32);
    event.writeUInt8(MAPPING_NOTIFY, 0);
    event.writeUInt8(KEYBOARD, 4);
    event.writeUInt8(min_keycode, 5);
    event.writeUInt8(max_keycode - min_keycode + 1, 6);
    // To the program that made the window, whatever it asked for.
    connection.tell(() => connection.client.SendEvent(window, 0, 0, event));
  }

  async #caughtUp(session: InputSession, window: number, blindMs: number, signal: AbortSignal): Promise<void> {
    const { connection } = session;
    const { client } = connection;
    const { atoms, answering } = await this.#knownOf(session);
    const listed = await saysItAnswers(session, atoms, window);
    if (listed === undefined) return;
    const mustAnswer = listed || answering.has(window);
    this.#id = (this.#id % 0x7fffffff) + 1;
    const id = this.#id;
    const pong = Promise.withResolvers<true>();
    const onEvent = ({ name, message_type, data }: XEvent) => {
      if (name === "ClientMessage" && message_type === atoms.protocols && data?.[0] === atoms.ping && data[1] === id) {
        pong.resolve(true);
      }
    };
    client.on("event", onEvent);
    try {
      connection.tell(() => client.SendClientMessage(window, window, atoms.protocols, 32, [atoms.ping, id, window], 0));
      const deadline = performance.now() + (mustAnswer ? PONG_MS : blindMs);
      for (let left = deadline - performance.now(); left > 0; left = deadline - performance.now()) {
        if (await within(Math.min(left, LOOK_AGAIN_MS), pong.promise, signal)) {
          answering.add(window);
          return;
        }
        // This also finds out whether the connection is still there.
        if ((await saysItAnswers(session, atoms, window)) === undefined) return;
      }
    } finally {
      client.off("event", onEvent);
    }
    if (!mustAnswer) return;
    throw new AgentEnvError(
      "delivery_failed",
      `the application that is typed into doesn't go on for ${PONG_MS / 1000} s`,
      {
        applied: "no",
        hint: "look at a screenshot: it may be busy, or hang",
      },
    );
  }

  async #knownOf(session: InputSession) {
    if (this.#known?.session !== session) {
      const { connection } = session;
      const atom = (name: string) => connection.ask<number>((done) => connection.client.InternAtom(false, name, done));
      const [protocols, ping] = await Promise.all([atom("WM_PROTOCOLS"), atom("_NET_WM_PING")]);
      this.#known = { session, atoms: { protocols, ping }, answering: new Set(), told: new Map() };
    }
    return this.#known;
  }
}

/** The window itself or the nearest one around it that lists the protocol. */
async function pingedAround(session: InputSession, atoms: Atoms, inner: number): Promise<number | undefined> {
  const { connection } = session;
  for (let window = inner; window !== 0 && window !== connection.root; ) {
    if (await saysItAnswers(session, atoms, window)) return window;
    const at = window;
    const tree = await connection
      .ask<{ parent: number }>((done) => connection.client.QueryTree(at, done))
      .catch(ifWindowGone);
    window = tree?.parent ?? 0;
  }
  return undefined;
}

/** Where nothing has the focus keys go to the innermost window under the pointer. */
async function windowUnderPointer({ connection }: InputSession): Promise<number | undefined> {
  let found: number | undefined;
  for (let window = connection.root; window !== 0; ) {
    const at = window;
    const pointer = await connection
      .ask<{ child: number }>((done) => connection.client.QueryPointer(at, done))
      .catch(ifWindowGone);
    window = pointer?.child ?? 0;
    if (window !== 0) found = window;
  }
  return found;
}

/** Whether the window's application lists the protocol; undefined where the window is gone. */
async function saysItAnswers({ connection }: InputSession, atoms: Atoms, window: number): Promise<boolean | undefined> {
  const property = await connection
    .ask<{ format: number; data: Buffer }>((done) =>
      connection.client.GetProperty(0, window, atoms.protocols, 0, 0, 64, done),
    )
    .catch(ifWindowGone);
  if (property === undefined) return undefined;
  if (property.format !== 32) return false;
  for (let at = 0; at + 4 <= property.data.length; at += 4) {
    if (property.data.readUInt32LE(at) === atoms.ping) return true;
  }
  return false;
}

/** A protocol error says that the window is no longer there; anything else is thrown on. */
function ifWindowGone(thrown: unknown): undefined {
  if (typeof (thrown as { error?: unknown }).error === "number") return undefined;
  throw thrown;
}

/** Whether `work` has come to something within `ms`; throws once the signal is aborted. */
async function within(ms: number, work: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  const settled = new AbortController();
  const late = sleep(ms, false, { signal: AbortSignal.any([signal, settled.signal]) }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    settled.abort();
    signal.throwIfAborted();
  }
}
