import { type Done, type XClient, type XDisplay, x11 } from "./x11.js";

/** How long the X server may take to answer. One that takes longer is taken for gone. */
const ANSWER_MS = 10_000;
const OPEN_MS = 5_000;

/** The connection to the X server dropped, or there is none to be had. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** One connection to the X server. Once it is lost everything that is asked of it fails with ConnectionLost. */
export class Connection implements Disposable {
  readonly root: number;
  readonly depth: number;
  #lost: ConnectionLost | undefined;
  #answeredAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<(lost: ConnectionLost) => void>();
  readonly #watch: NodeJS.Timeout;

  private constructor(
    readonly client: XClient,
    readonly display: XDisplay,
    onProtocolError: (error: Error) => void,
    answerMs: number,
  ) {
    const screen = display.screen[0];
    if (screen === undefined) throw new ConnectionLost("the X server has no screen");
    this.root = screen.root;
    this.depth = screen.root_depth;
    // The package shares its table among all connections, but each server numbers its atoms by itself.
    client.atoms = {};
    this.#watch = setTimeout(() => {
      if (this.#waiting.size > 0) this.lose(new ConnectionLost(`the X server did not answer for ${answerMs / 1000} s`));
    }, answerMs);
    this.#watch.unref();
    const gone = () => this.lose(new ConnectionLost("the connection to the X server dropped"));
    client.on("end", gone);
    client.stream.once("close", gone);
    // The error of a request that has no answer comes here, and so does that of the socket, which is then closed.
    client.on("error", onProtocolError);
  }

  /** Throws ConnectionLost. With `shm` the connection can hand the server shared memory. */
  static open(
    name: string,
    options: { shm: boolean; onProtocolError: (error: Error) => void; answerMs?: number },
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const failed = (why: string, cause?: unknown) => {
        clearTimeout(timer);
        reject(new ConnectionLost(`the X server of ${name} ${why}`, { cause }));
      };
      const timer = setTimeout(() => {
        client.stream?.destroy();
        failed("does not answer");
      }, OPEN_MS);
      const client = x11().createClient({ display: name, shm: options.shm, bufferRequests: true }, (error, display) => {
        if (error) return failed(`can't be reached: ${error.message}`, error);
        clearTimeout(timer);
        try {
          resolve(new Connection(client, display, options.onProtocolError, options.answerMs ?? ANSWER_MS));
        } catch (thrown) {
          client.stream.destroy();
          reject(thrown);
        }
      });
      client.on("error", (error) => failed(`can't be reached: ${error.message}`, error));
    });
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /** How long ago the server last answered, in milliseconds; all events from before have come. */
  get sinceAnswer(): number {
    return performance.now() - this.#answeredAt;
  }

  /** The answer to one request. A protocol error that answers it is thrown as it is. */
  ask<T>(request: (done: Done<T>) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#lost !== undefined) {
        reject(this.#lost);
        return;
      }
      this.#waiting.add(reject);
      this.#watch.refresh();
      request((error, value) => {
        this.#waiting.delete(reject);
        this.#answeredAt = performance.now();
        if (error) reject(error);
        else resolve(value);
        return true;
      });
    });
  }

  /** Sends a request that has no answer. */
  tell(request: () => void): void {
    if (this.#lost !== undefined) throw this.#lost;
    request();
  }

  /** Resolves once the server has done all that was asked of it, and its events up to then have come. */
  async sync(): Promise<void> {
    await this.ask((done) => this.client.GetInputFocus(done));
  }

  lose(why: ConnectionLost): void {
    if (this.#lost !== undefined) return;
    this.#lost = why;
    clearTimeout(this.#watch);
    for (const reject of this.#waiting) reject(why);
    this.#waiting.clear();
    this.client.stream.destroy();
  }

  [Symbol.dispose](): void {
    this.lose(new ConnectionLost("the connection is closed"));
  }
}
