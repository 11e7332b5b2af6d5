import { createRequire } from "node:module";

/** How long a window manager that doesn't answer is waited for, in milliseconds. */
const ANSWER_MS = 250;
const MAX_UNANSWERED = 32;

/** What is used here of the package `x11`, which has no types. */
interface X11 {
  createClient(
    options: { display: string; shm: false; disableBigRequests: true },
    done: (error: Error | undefined, display: { screen: readonly { root: number }[] }) => void,
  ): XClient;
}
interface XClient {
  atoms: Record<string, number>;
  readonly stream?: { destroy(): void; unref?(): void };
  on(event: "event", listener: (event: { type: number; wid?: number; atom?: number }) => void): this;
  on(event: "error" | "end", listener: () => void): this;
  AllocID(): number;
  QueryPointer(window: number, done: (error: Error | null, pointer: { keyMask: number } | undefined) => boolean): void;
  CreateWindow(...values: unknown[]): void;
  InternAtom(onlyIfExists: boolean, name: string, done: (error: Error | null, atom: number) => void): void;
  SendEvent(destination: number, propagate: 0, mask: number, event: Buffer): void;
}

const INPUT_ONLY = 2;
const PROPERTY_CHANGE_MASK = 0x400000;
/** SubstructureNotify and SubstructureRedirect: what reaches a window manager. */
const TO_WINDOW_MANAGER = 0x180000;
/** The bits of the buttons in a pointer's state. */
const BUTTONS = 0x1f00;
const CLIENT_MESSAGE = 33;
const PROPERTY_NOTIFY = 28;

/**
 * Waits until the window manager is done with the input that was sent before. A window manager takes each click first and
 * passes it on once it has given the window the focus. Until then the X server holds the pointer's events back, and keys don't
 * wait for that: a key that is sent after a click can reach the program before it. Moved meanwhile, the pointer takes the click
 * along: the server replays it where the pointer is by then.
 *
 * Asked is for the size of a window's frame (Extended Window Manager Hints, `_NET_REQUEST_FRAME_EXTENTS`), which the window
 * manager answers after the events that came before the question. Costs about half a millisecond.
 */
export class SettledInput {
  readonly #display: string;
  #asking: Promise<Connection | undefined> | undefined;
  #connection: Connection | undefined;
  /** Whether a window manager ever answered on this display; one that never does isn't waited for again. */
  #silent = false;
  #closed = false;

  constructor(display: string) {
    this.#display = display;
  }

  /** Resolves when the window manager is done, or after a quarter of a second; never rejects. */
  async settled(): Promise<void> {
    if (this.#closed || this.#silent) return;
    const connection = this.#connection?.open ? this.#connection : await this.#connect();
    if (connection === undefined) return;
    const answered = await connection.ask();
    if (!answered && !connection.hasAnswered) this.#silent = true;
  }

  /**
   * The same for clicks alone. While the X server holds one back its button is down: where none is, the window manager isn't
   * waited for, and that costs one answer of the server, a tenth of a millisecond.
   */
  async clicksPassedOn(): Promise<void> {
    if (this.#closed || this.#silent) return;
    const connection = this.#connection?.open ? this.#connection : await this.#connect();
    if (await connection?.buttonsDown()) await this.settled();
  }

  close(): void {
    this.#closed = true;
    this.#connection?.close();
  }

  /** The window manager of a display that came back may be another one. */
  displayIsBack(): void {
    this.#silent = false;
  }

  #connect(): Promise<Connection | undefined> {
    this.#asking ??= Connection.open(this.#display).then((connection) => {
      this.#asking = undefined;
      if (this.#closed) connection?.close();
      else this.#connection = connection;
      return connection;
    });
    return this.#asking;
  }
}

class Connection {
  open = true;
  hasAnswered = false;
  /** One entry a question that isn't answered yet, in their order; those that nobody waits for any more included. */
  readonly #unanswered: ((answered: boolean) => void)[] = [];

  private constructor(
    private readonly client: XClient,
    private readonly root: number,
    private readonly window: number,
    private readonly question: number,
    answer: number,
  ) {
    client.on("event", ({ type, wid, atom }) => {
      if (type !== PROPERTY_NOTIFY || wid !== window || atom !== answer) return;
      this.hasAnswered = true;
      this.#unanswered.shift()?.(true);
    });
  }

  /** Undefined where no X server answers in time. */
  static async open(display: string): Promise<Connection | undefined> {
    const x11 = createRequire(import.meta.url)("x11") as X11;
    const opened = Promise.withResolvers<Connection | undefined>();
    let connection: Connection | undefined;
    const client = x11.createClient(
      { display, shm: false, disableBigRequests: true },
      (error, { screen } = { screen: [] }) => {
        const root = screen[0]?.root;
        if (error || root === undefined) return opened.resolve(undefined);
        // The package keeps the atoms of all its connections in one table, though each X server numbers its own.
        client.atoms = {};
        const window = client.AllocID();
        client.CreateWindow(window, root, -1, -1, 1, 1, 0, 0, INPUT_ONLY, 0, { eventMask: PROPERTY_CHANGE_MASK });
        client.InternAtom(false, "_NET_REQUEST_FRAME_EXTENTS", (_error, question) =>
          client.InternAtom(false, "_NET_FRAME_EXTENTS", (_failure, answer) => {
            connection = new Connection(client, root, window, question, answer);
            opened.resolve(connection);
          }),
        );
      },
    );
    const gone = () => {
      opened.resolve(undefined);
      connection?.close();
    };
    client.on("error", gone);
    client.on("end", gone);
    const late = setTimeout(() => opened.resolve(undefined), ANSWER_MS);
    const result = await opened.promise;
    clearTimeout(late);
    if (result === undefined) client.stream?.destroy();
    return result;
  }

  /** Whether a button is down; taken to be where the X server doesn't say so in time. */
  buttonsDown(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (!this.open) return Promise.resolve(false);
    const late = setTimeout(() => resolve(true), ANSWER_MS);
    this.client.QueryPointer(this.root, (error, pointer) => {
      clearTimeout(late);
      resolve(!error && ((pointer?.keyMask ?? 0) & BUTTONS) !== 0);
      return true;
    });
    return promise;
  }

  /** Whether the window manager answered in time. */
  ask(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const late = setTimeout(() => resolve(false), ANSWER_MS);
    this.#unanswered.push((answered) => {
      clearTimeout(late);
      resolve(answered);
    });
    // A window manager that hangs is asked anew, on a new connection, once it has this much to catch up with.
    if (this.#unanswered.length > MAX_UNANSWERED) this.close();
    if (!this.open) return promise;
    const message = Buffer.alloc(32);
    message.writeUInt8(CLIENT_MESSAGE, 0);
    message.writeUInt8(32, 1);
    message.writeUInt32LE(this.window, 4);
    message.writeUInt32LE(this.question, 8);
    this.client.SendEvent(this.root, 0, TO_WINDOW_MANAGER, message);
    return promise;
  }

  close(): void {
    this.open = false;
    for (const done of this.#unanswered.splice(0)) done(false);
    this.client.stream?.destroy();
  }
}
