import { AgentEnvError, messageOf } from "../../errors.js";
import type { RawJson } from "../../protocol/raw-json.js";
import { NotSent } from "./link.js";

/** A request to another server. */
export interface UpstreamRequest<Tag> {
  readonly method: string;
  /** JSON text. */
  readonly params: string;
  readonly signal: AbortSignal;
  /** After this long without a word from the server the request is given up. */
  readonly silenceMs: number;
  /** Comes back with what the server says about this request. */
  readonly tag?: Tag;
}

/**
 * A request that the server hasn't answered. It is over with the first of these: an answer, a failure, the signal, the server's
 * silence, which whoever has it asks about now and then: a timer for each is a good part of what a short call costs.
 */
export class PendingRequest<Tag> {
  /** The result or the server's error; rejects with a NotSent, an AgentEnvError (`timeout`, `delivery_failed`) or the signal's reason. */
  readonly answer: Promise<RawJson>;
  readonly #resolve: (answer: RawJson) => void;
  readonly #reject: (reason: unknown) => void;
  /** When the server last said something about it. */
  #heard = performance.now();

  constructor(
    readonly request: UpstreamRequest<Tag>,
    /** The progress token as the client wrote it, in JSON, where it was replaced. */
    readonly progressToken: string | undefined,
    /** Called once, when it is over; with the reason where nobody waits for the server's answer any more. */
    private readonly over: (givenUp?: { reason: unknown }) => void,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<RawJson>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    request.signal.addEventListener("abort", this.#aborted, { once: true });
  }

  readonly #aborted = (): void => this.#giveUp(this.request.signal.reason);

  #giveUp(reason: unknown): void {
    this.#end({ reason });
    this.#reject(reason);
  }

  #end(givenUp?: { reason: unknown }): void {
    this.request.signal.removeEventListener("abort", this.#aborted);
    this.over(givenUp);
  }

  /** The server said something about it. */
  alive(): void {
    this.#heard = performance.now();
  }

  /** Gives it up if the server has said nothing about it for too long. */
  checkSilence(): void {
    const { method, silenceMs } = this.request;
    if (performance.now() - this.#heard < silenceMs) return;
    this.#giveUp(new AgentEnvError("timeout", `the server said nothing about ${method} for ${silenceMs} ms`));
  }

  answered(answer: RawJson): void {
    this.#end();
    this.#resolve(answer);
  }

  /** It can't be answered any more, or was never sent. */
  failed(reason: unknown): void {
    this.#end();
    const { method } = this.request;
    this.#reject(
      reason instanceof NotSent || reason instanceof AgentEnvError
        ? reason
        : new AgentEnvError("delivery_failed", `the answer to ${method} is lost: ${messageOf(reason)}`, {
            cause: reason,
          }),
    );
  }
}
