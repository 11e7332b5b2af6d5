import { AgentEnvError } from "../../src/errors.js";
import type { Wire, WireUser } from "./wire.js";

/**
 * The connection that a transport session lives by: the daemon ends the session, and the named sessions started in it,
 * when it closes.
 */
export class ControlConnection implements WireUser {
  /** Resolves once the daemon has taken the session; rejects with `device_unavailable`. */
  readonly ready: Promise<void>;
  /** Resolves when the connection is closed, whoever closed it. */
  readonly gone: Promise<void>;
  readonly #wire: Wire;
  readonly #timer: NodeJS.Timeout;
  #answer = "";
  #state: "beginning" | "open" | "closed" = "beginning";
  #taken!: () => void;
  #refused!: (error: AgentEnvError) => void;
  #ended!: () => void;

  constructor(
    wire: Wire,
    readonly sessionId: string,
    deadlineMs: number,
    /** Called when the daemon doesn't take the session in time. */
    onDeadline: () => void = () => {},
  ) {
    this.#wire = wire;
    this.ready = new Promise((resolve, reject) => {
      this.#taken = resolve;
      this.#refused = reject;
    });
    this.gone = new Promise((resolve) => {
      this.#ended = resolve;
    });
    this.#timer = setTimeout(() => {
      this.#refuse(`it didn't answer within ${deadlineMs} ms`);
      onDeadline();
    }, deadlineMs);
    wire.use(this);
  }

  get open(): boolean {
    return this.#state === "open";
  }

  /** Ends the session. */
  close(): void {
    this.#over();
  }

  opened(): void {
    this.#wire.write(`${JSON.stringify({ method: "session_begin", session_id: this.sessionId })}\n`);
  }

  written(): void {}

  data(chunk: Buffer): void {
    if (this.#state !== "beginning") return;
    this.#answer += chunk.toString("latin1");
    if (this.#answer.includes("\n")) this.#answered();
    else if (this.#answer.length > 4096) this.#refuse("its answer is too long");
  }

  #answered(): void {
    if (!this.#answer.startsWith('{"ok":true,')) {
      this.#refuse("it refused the session");
      return;
    }
    clearTimeout(this.#timer);
    this.#state = "open";
    this.#taken();
  }

  closed(error: NodeJS.ErrnoException | undefined): void {
    if (this.#state === "beginning") this.#refuse("it can't be reached", error);
    else this.#over();
  }

  #refuse(why: string, cause?: Error): void {
    this.#over();
    this.#refused(
      new AgentEnvError("device_unavailable", `cua-driver's daemon didn't take a session: ${why}`, { cause }),
    );
  }

  #over(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#timer);
    this.#wire.destroy();
    this.#ended();
  }
}
