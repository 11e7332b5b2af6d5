import type { ServerResponse } from "node:http";
import { startStream, write } from "./http-answer.js";
import { event } from "./wire.js";

/** When a client whose stream broke off comes back, unless a call says otherwise. */
const RETRY_MS = 1_000;

/** How long a client has to come back for the rest of a stream that has ended. */
const COME_BACK_MS = 60_000;

/**
 * A stream of server-sent events that may outlive its connection: a client that lost it, or that was let go, comes back
 * with the id of the last event it saw and gets those since. Source: Model Context Protocol 2025-11-25, "Resumability and
 * Redelivery"; events carry ids for clients of that revision alone, since older ones take the empty first event for a message.
 */
export class EventStream {
  #response: ServerResponse | undefined;
  #kept: { n: number; text: string }[] = [];
  #keptBytes = 0;
  #last = 0;
  #primed = false;
  #ended = false;
  #isDone = false;
  #forget: NodeJS.Timeout | undefined;

  constructor(
    private readonly name: string,
    private readonly sessionId: string,
    readonly resumable: boolean,
    /** How many bytes of events are kept for a client that comes back. */
    private readonly maxKeptBytes: number,
    /** Called once everything was handed to a client, or none came back for it. */
    private readonly delivered: () => void = () => {},
  ) {}

  /** Whether a client is connected. */
  get open(): boolean {
    return this.#response !== undefined;
  }

  /** Continues on a connection, with the events after the `after`th. Without it nothing is repeated. */
  attach(response: ServerResponse, after = this.#last, retryMs = RETRY_MS): void {
    clearTimeout(this.#forget);
    const before = this.#response;
    this.#response = response;
    before?.end();
    startStream(response, this.sessionId);
    response.once("close", () => {
      if (this.#response !== response) return;
      this.#response = undefined;
      if (this.#ended && !this.#isDone) this.#forgetLater();
    });
    if (this.resumable && !this.#primed) {
      this.#primed = true;
      write(response, `id: ${this.name}-0\nretry: ${retryMs}\ndata: \n\n`);
    }
    for (const { n, text } of this.#kept) if (n > after) write(response, text);
    if (this.#ended) this.#finish(response);
  }

  push(message: string): void {
    this.#last += 1;
    const text = this.resumable ? `id: ${this.name}-${this.#last}\n${event(message)}` : event(message);
    if (this.resumable) this.#keep({ n: this.#last, text });
    if (this.#response !== undefined) write(this.#response, text);
  }

  #keep(kept: { n: number; text: string }): void {
    this.#kept.push(kept);
    this.#keptBytes += kept.text.length;
    while (this.#keptBytes > this.maxKeptBytes && this.#kept.length > 1) {
      this.#keptBytes -= this.#kept.shift()?.text.length ?? 0;
    }
  }

  /** Lets go of the connection while the stream goes on, for a client that can come back. */
  release(retryMs: number): void {
    if (!this.resumable || this.#response === undefined) return;
    write(this.#response, `retry: ${retryMs}\n\n`);
    this.#response.end();
    this.#response = undefined;
  }

  /** Nothing more comes. */
  end(): void {
    this.#ended = true;
    if (this.#response !== undefined) this.#finish(this.#response);
    else if (this.resumable) this.#forgetLater();
    else this.delivered();
  }

  #forgetLater(): void {
    clearTimeout(this.#forget);
    this.#forget = setTimeout(() => this.#done(), COME_BACK_MS).unref();
  }

  #done(): void {
    clearTimeout(this.#forget);
    this.#isDone = true;
    this.#kept = [];
    this.delivered();
  }

  #finish(response: ServerResponse): void {
    response.once("finish", () => this.#done());
    response.end();
  }

  /** Closes the connection, and forgets what was kept. */
  close(): void {
    clearTimeout(this.#forget);
    this.#isDone = true;
    this.#kept = [];
    this.#response?.end();
    this.#response = undefined;
  }
}
