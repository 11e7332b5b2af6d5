import { AgentEnvError } from "../../src/errors.js";
import { type Connection, ConnectionLost } from "./connection.js";

/** What is kept of one connection, such as its extensions. */
export interface Session {
  readonly connection: Connection;
}

/** A connection that is opened when it is first needed, and anew when it has dropped. */
export class Link<S extends Session> {
  #session: Promise<S> | undefined;
  #closed = false;

  constructor(private readonly open: () => Promise<S>) {}

  /** The live connection. Throws ConnectionLost. */
  async session(): Promise<S> {
    if (this.#closed) throw new ConnectionLost("the driver is closed");
    const known = this.#session;
    if (known !== undefined) {
      const session = await known;
      if (!session.connection.lost) return session;
      if (this.#session === known) this.#session = undefined;
    }
    if (this.#session === undefined) {
      const opening = this.open();
      this.#session = opening;
      opening.catch(() => {
        if (this.#session === opening) this.#session = undefined;
      });
    }
    return this.#session;
  }

  /**
   * What a read comes to; one during which the connection drops is done once more on a new one. Throws `device_unavailable`
   * where there is no X server.
   */
  async read<T>(run: (session: S) => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      try {
        return await run(await this.session());
      } catch (thrown) {
        if (!(thrown instanceof ConnectionLost)) throw thrown;
        if (tried === 2 || this.#closed) throw unavailable(thrown);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const session = await this.#session?.catch(() => undefined);
    session?.connection[Symbol.dispose]();
  }
}

export function unavailable(cause: ConnectionLost): AgentEnvError {
  return new AgentEnvError("device_unavailable", cause.message, {
    hint: "the display may be starting again: wait a moment and call again",
    cause,
  });
}
