import type { ServerResponse } from "node:http";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { AgentEnvError } from "../errors.js";
import type { EventStream } from "./event-stream.js";
import { answer, startStream } from "./http-answer.js";
import { type MessageText, REFUSED, textOf } from "./wire.js";

const SESSION_ENDED = new AgentEnvError("delivery_failed", "the session ended before this was answered", {
  hint: "what it asked for may have happened: look before you ask again, in a new session",
});

/**
 * The answering of one POST: with plain JSON when its answer is the first thing to say, and as an event stream when a
 * notification or a request to the client comes before it. Both are the specification's (2025-11-25, "Sending Messages to
 * the Server"), and plain JSON is what keeps a call short.
 */
export class Exchange {
  readonly #waiting: Set<RequestId>;
  readonly #ready: MessageText[] = [];
  #stream: EventStream | undefined;

  constructor(
    private readonly response: ServerResponse,
    ids: readonly RequestId[],
    private readonly batch: boolean,
    private readonly sessionId: string,
    /** Makes the event stream, once one is needed. */
    private readonly newStream: () => EventStream,
  ) {
    this.#waiting = new Set(ids);
  }

  respond(id: RequestId, message: MessageText): void {
    this.#waiting.delete(id);
    if (this.#stream === undefined) this.#ready.push(message);
    else this.#stream.push(textOf(message));
    if (this.#waiting.size === 0) this.end();
  }

  /** Says something before the answer: from here on it is an event stream. */
  say(text: string): void {
    this.#streaming().push(text);
  }

  /** Lets the client's connection go while the call goes on. */
  release(retryMs: number): void {
    this.#streaming(retryMs).release(retryMs);
  }

  #streaming(retryMs?: number): EventStream {
    if (this.#stream === undefined) {
      this.#stream = this.newStream();
      this.#stream.attach(this.response, 0, retryMs);
      for (const ready of this.#ready.splice(0)) this.#stream.push(textOf(ready));
    }
    return this.#stream;
  }

  abandon(id: RequestId): void {
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.end();
  }

  /** Answers every request that is still in the works: its session has ended, and what becomes of it isn't known. */
  sessionEnded(): void {
    for (const id of [...this.#waiting]) {
      const { message, ...fields } = SESSION_ENDED.fields();
      this.respond(id, JSON.stringify({ jsonrpc: "2.0", id, error: { code: REFUSED, message, data: fields } }));
    }
    this.end();
  }

  end(): void {
    if (this.#stream !== undefined) {
      this.#stream.end();
    } else if (this.response.writableEnded) {
      return;
    } else if (this.#ready.length === 0) {
      // Every request was cancelled: an event stream without an event is the answer that says nothing.
      startStream(this.response, this.sessionId);
      this.response.end();
    } else {
      const body = this.batch ? `[${this.#ready.map(textOf).join(",")}]` : (this.#ready[0] as MessageText);
      answer(this.response, 200, body, this.sessionId);
    }
  }
}
