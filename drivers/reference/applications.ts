import { setTimeout as sleep } from "node:timers/promises";
import { AgentEnvError } from "../../src/errors.js";
import type { InputSession } from "./input-session.js";
import type { XEvent } from "./x11.js";

/** How long an application may take to say that it goes on. */
const PONG_MS = 5_000;
/** How long a wait for a pong goes before the window is looked at again, which may be gone. */
const LOOK_AGAIN_MS = 100;
const POINTER_ROOT = 1;

interface Atoms {
  readonly protocols: number;
  readonly ping: number;
}

/**
 * Knows how far applications have come with their events. An application reads them in the order in which the server sent them,
 * so one that answers a ping (`_NET_WM_PING` of the Extended Window Manager Hints) has read all that came before it: new
 * keysyms of a key, and presses of it, which it looks up on a keymap that it asks the server for.
 */
export class Applications {
  static #id = 0;
  #atoms: { session: InputSession; atoms: Atoms } | undefined;

  /**
   * Resolves once the applications of `windows` have read all that was sent to them until now. Throws `delivery_failed`
   * where one doesn't go on.
   */
  async caughtUp(session: InputSession, windows: Iterable<number>, signal: AbortSignal): Promise<void> {
    const atoms = await this.#atomsOf(session);
    await Promise.all([...windows].map((window) => this.#answers(session, atoms, window, signal)));
  }

  /** The window that has the keyboard focus, or one around it, which answers pings; undefined where none does. */
  async focused(session: InputSession): Promise<number | undefined> {
    return focusedWindow(session, await this.#atomsOf(session));
  }

  async #answers(session: InputSession, atoms: Atoms, window: number, signal: AbortSignal): Promise<void> {
    const { connection } = session;
    const { client } = connection;
    Applications.#id = (Applications.#id % 0x7fffffff) + 1;
    const id = Applications.#id;
    const answered = Promise.withResolvers<true>();
    const onEvent = ({ name, message_type, data }: XEvent) => {
      if (name === "ClientMessage" && message_type === atoms.protocols && data?.[0] === atoms.ping && data[1] === id) {
        answered.resolve(true);
      }
    };
    client.on("event", onEvent);
    try {
      connection.tell(() => client.SendClientMessage(window, window, atoms.protocols, 32, [atoms.ping, id, window], 0));
      for (const deadline = performance.now() + PONG_MS; performance.now() < deadline; ) {
        const waiting = new AbortController();
        const outer = () => waiting.abort();
        signal.addEventListener("abort", outer, { once: true });
        const late = sleep(LOOK_AGAIN_MS, false, { signal: waiting.signal }).catch(() => false);
        const done = await Promise.race([answered.promise, late]);
        signal.removeEventListener("abort", outer);
        waiting.abort();
        signal.throwIfAborted();
        // A round trip also finds out whether the connection is still there.
        if (done || !(await answersPings(session, atoms, window))) return;
      }
    } finally {
      client.off("event", onEvent);
    }
    throw new AgentEnvError("delivery_failed", "the application that is typed into has not gone on for 5 s", {
      applied: "no",
      hint: "look at a screenshot: it may be busy, or hang",
    });
  }

  async #atomsOf(session: InputSession): Promise<Atoms> {
    if (this.#atoms?.session !== session) {
      const { connection } = session;
      const atom = (name: string) => connection.ask<number>((done) => connection.client.InternAtom(false, name, done));
      const [protocols, ping] = await Promise.all([atom("WM_PROTOCOLS"), atom("_NET_WM_PING")]);
      this.#atoms = { session, atoms: { protocols, ping } };
    }
    return this.#atoms.atoms;
  }
}

async function focusedWindow(session: InputSession, atoms: Atoms): Promise<number | undefined> {
  const { connection } = session;
  const { client, root } = connection;
  const { focus } = await connection.ask<{ focus: number }>((done) => client.GetInputFocus(done));
  if (focus === POINTER_ROOT) return windowUnderPointer(session, atoms);
  for (let window = focus; window !== 0 && window !== root; ) {
    if (await answersPings(session, atoms, window)) return window;
    const at = window;
    const parent = await connection.ask<{ parent: number }>((done) => client.QueryTree(at, done)).catch(ifWindowGone);
    window = parent?.parent ?? 0;
  }
  return undefined;
}

async function windowUnderPointer(session: InputSession, atoms: Atoms): Promise<number | undefined> {
  const { connection } = session;
  for (let window = connection.root; window !== 0; ) {
    const at = window;
    const pointer = await connection
      .ask<{ child: number }>((done) => connection.client.QueryPointer(at, done))
      .catch(ifWindowGone);
    window = pointer?.child ?? 0;
    if (window !== 0 && (await answersPings(session, atoms, window))) return window;
  }
  return undefined;
}

/** Whether the window is there and its application says that it answers pings. */
async function answersPings({ connection }: InputSession, atoms: Atoms, window: number): Promise<boolean> {
  const property = await connection
    .ask<{ format: number; data: Buffer }>((done) =>
      connection.client.GetProperty(0, window, atoms.protocols, 0, 0, 64, done),
    )
    .catch(ifWindowGone);
  if (property === undefined || property.format !== 32) return false;
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
