import { createConnection, type Socket } from "node:net";

/** What a connection tells the exchange that it belongs to. */
export interface WireUser {
  /** Connected: it may write. */
  opened(): void;
  /** The line that was written is in the kernel's hands, whole. */
  written(): void;
  /** A piece of the answer. */
  data(chunk: Buffer): void;
  /** Nothing more comes: the other side closed it, or it failed. Not called after `destroy`. */
  closed(error: NodeJS.ErrnoException | undefined): void;
}

/**
 * One connection to the daemon's socket. It can be opened before anybody needs it: until it is given a user it only
 * notices that it was closed.
 */
export class Wire {
  readonly #socket: Socket;
  #user: WireUser | undefined;
  #state: "connecting" | "open" | "closed" = "connecting";
  #error: NodeJS.ErrnoException | undefined;

  /** `ahead`: opened before it is needed, so it doesn't keep the process alive until it is used. */
  constructor(path: string, ahead = false) {
    const socket = createConnection({ path });
    if (ahead) socket.unref();
    this.#socket = socket;
    socket.on("connect", () => {
      if (this.#state !== "connecting") return;
      this.#state = "open";
      this.#user?.opened();
    });
    socket.on("data", (chunk: Buffer) => this.#user?.data(chunk));
    socket.on("error", (error) => this.#close(error));
    socket.on("end", () => this.#close(undefined));
    socket.on("close", () => this.#close(undefined));
  }

  get state(): "connecting" | "open" | "closed" {
    return this.#state;
  }

  /** Gives the connection to its user, once. Where it is open already, `opened` is called before this returns. */
  use(user: WireUser): void {
    this.#user = user;
    this.#socket.ref();
    if (this.#state === "open") user.opened();
    else if (this.#state === "closed") user.closed(this.#error);
  }

  write(line: string): void {
    this.#socket.write(line, "utf8", this.#written);
  }

  destroy(): void {
    this.#letGo();
    this.#socket.destroy();
  }

  /** The same for a connection that has done its work, behind what its answer sets going: closing takes a tenth of a ms. */
  destroySoon(): void {
    this.#letGo();
    setImmediate(() => this.#socket.destroy());
  }

  #letGo(): void {
    this.#state = "closed";
    this.#user = undefined;
  }

  readonly #written = (error?: Error | null): void => {
    if (!error) this.#user?.written();
  };

  #close(error: NodeJS.ErrnoException | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#error = error;
    const user = this.#user;
    this.#user = undefined;
    this.#socket.destroy();
    user?.closed(error);
  }
}
