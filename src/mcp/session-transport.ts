import type { IncomingMessage, ServerResponse } from "node:http";
import type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { TextAnswer } from "../environment/client-peer.js";
import { AgentEnvError } from "../errors.js";
import { memberText } from "../protocol/json-text.js";
import { EarlyCancels } from "./early-cancels.js";
import { EventStream } from "./event-stream.js";
import { Exchange } from "./exchange.js";
import { answer } from "./http-answer.js";
import type { OwnRequests } from "./own-requests.js";
import type { Turns } from "./wakefulness.js";
import { errorBody, INVALID_REQUEST, type Incoming, REFUSED, serialize, textOf, withSmallToken } from "./wire.js";

/** From this revision on a client knows event ids and the empty first event. */
const RESUMABLE_SINCE = "2025-11-25";
/** What is kept of one call's events, and of those that belong to no call, for a client that comes back. */
const CALL_KEPT_BYTES = 1 << 20;
const UNASKED_KEPT_BYTES = 32 << 10;
/** How many calls' streams whose client went away are kept. */
const MAX_STREAMS = 16;
/** How many questions to the client may be open. */
const MAX_QUESTIONS = 256;
/** The stream of what the server says unasked. */
const UNASKED = "0";

interface Question {
  resolve(answer: TextAnswer): void;
  reject(reason: unknown): void;
}

/** What a request brings along to its handler, beside its params. */
export interface RequestSource {
  readonly headers: IncomingMessage["headers"];
  /** The message as the client wrote it. */
  readonly text: string;
}

/**
 * One MCP session over streamable HTTP. Results that are JSON text already are sent as they are, and questions to the
 * client are asked and answered as text, which is why the transport is ours.
 */
export class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;

  /** Answers requests before the protocol layer sees them. */
  requests?: OwnRequests;

  /** Called with each notification that isn't about the session itself. */
  onunknown?: (
    message: { method: string; params?: Record<string, unknown> | undefined },
    source: RequestSource,
  ) => void;

  readonly #exchanges = new Map<RequestId, Exchange>();
  readonly #early = new EarlyCancels();
  /** Calls' event streams that a client may come back to. */
  readonly #streams = new Map<string, EventStream>();
  readonly #questions = new Map<string, Question>();
  #unasked: EventStream | undefined;
  #streamCount = 0;
  #questionCount = 0;
  #resumable = false;
  #closed = false;

  constructor(
    readonly sessionId: string,
    /** Called whenever the session is used. */
    private readonly used: () => void,
    private readonly turns: Turns,
  ) {}

  /** Whether a request is being answered or an event stream is open. */
  get busy(): boolean {
    return this.#exchanges.size > 0 || this.listening;
  }

  /** Whether the stream for what is said unasked is open. */
  get listening(): boolean {
    return this.#unasked?.open === true;
  }

  get inFlight(): number {
    return this.#exchanges.size;
  }

  async start(): Promise<void> {}

  /** Takes the messages of one POST; the answer to its requests goes to `response`, whenever it comes. */
  receive(request: IncomingMessage, response: ServerResponse, incoming: Incoming): void {
    const messages = incoming.messages.map(withoutZero);
    const ids: RequestId[] = [];
    for (const message of messages) if ("method" in message && "id" in message) ids.push(message.id);
    if (ids.some((id) => this.#exchanges.has(id)) || (ids.length > 1 && new Set(ids).size < ids.length)) {
      answer(
        response,
        400,
        errorBody(INVALID_REQUEST, "Invalid Request: a request with that id is still being answered"),
      );
      return;
    }
    if (ids.length > 0) {
      const exchange = new Exchange(response, ids, incoming.batch, this.sessionId, () => this.#newStream());
      for (const id of ids) this.#exchanges.set(id, exchange);
      this.turns.asked(ids.length);
    }
    for (const [index, message] of messages.entries()) {
      const text = incoming.texts[index] ?? "";
      if (!("method" in message)) {
        this.#answered(message, text);
        continue;
      }
      const source: RequestSource = { headers: request.headers, text };
      if ("id" in message && this.#early.take(message.id)) {
        this.#abandon(message.id);
        continue;
      }
      if ("id" in message && this.requests?.take(message, source)) continue;
      this.onmessage?.(withSmallToken(message), { requestInfo: source });
      if ("id" in message || message.method === "notifications/initialized") continue;
      if (message.method === "notifications/cancelled") this.#cancelled(message);
      else this.onunknown?.(message, source);
    }
    if (ids.length === 0) answer(response, 202, "");
  }

  /** Opens the stream for what the server says unasked, one a session; or goes on with a stream that broke off. */
  openStream(response: ServerResponse, lastEventId: string | undefined): void {
    const [, name = UNASKED, last] = /^(\d+)-(\d+)$/.exec(lastEventId ?? "") ?? [];
    const broken = this.#streams.get(name);
    if (broken !== undefined) {
      broken.attach(response, Number(last));
      return;
    }
    if (this.listening) {
      answer(response, 409, errorBody(REFUSED, "Conflict: this session has an event stream already"));
      return;
    }
    this.#unasked ??= new EventStream(UNASKED, this.sessionId, this.#resumable, UNASKED_KEPT_BYTES);
    this.#unasked.attach(response, name === UNASKED && last !== undefined ? Number(last) : undefined);
    response.once("close", () => this.used());
  }

  #newStream(): EventStream {
    this.#streamCount += 1;
    const name = String(this.#streamCount);
    const stream = new EventStream(name, this.sessionId, this.#resumable, CALL_KEPT_BYTES, () => {
      this.#streams.delete(name);
    });
    if (this.#resumable) {
      this.#streams.set(name, stream);
      const [oldest] = this.#streams.keys();
      if (this.#streams.size > MAX_STREAMS && oldest !== undefined) this.#streams.delete(oldest);
    }
    return stream;
  }

  /** Answers one of the client's requests; one that nobody waits for any more isn't. */
  answer(message: JSONRPCMessage): void {
    const { id } = message as { id?: RequestId };
    const exchange = id === undefined ? undefined : this.#exchanges.get(id);
    if (exchange === undefined || id === undefined) return;
    const text = serialize(id === ZERO ? ({ ...message, id: 0 } as JSONRPCMessage) : message);
    const version = (message as { result?: { protocolVersion?: unknown } }).result?.protocolVersion;
    if (typeof version === "string") this.#resumable = version >= RESUMABLE_SINCE;
    this.#exchanges.delete(id);
    exchange.respond(id, text);
    this.turns.answered();
    this.#early.over(id);
    this.used();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!("method" in message)) {
      this.answer(message);
      return;
    }
    // What nobody listens to can't be delivered; only a request has someone waiting for it.
    if (!this.say(textOf(serialize(message)), options?.relatedRequestId) && "id" in message) throw nobodyListens();
  }

  /** Says something: on the stream of the request that it belongs to, else on that for what is said unasked. */
  say(text: string, related?: RequestId): boolean {
    const exchange = related === undefined ? undefined : this.#exchanges.get(related);
    if (exchange !== undefined) exchange.say(text);
    else if (this.#unasked !== undefined) this.#unasked.push(text);
    return exchange !== undefined || this.listening;
  }

  /**
   * Asks the client and answers what it says. `params` is JSON text. Throws `delivery_failed` when the client can't be asked
   * or its session ends, `limit_exceeded`, and the signal's reason.
   */
  async ask(method: string, params: string, related: RequestId | undefined, signal: AbortSignal): Promise<TextAnswer> {
    signal.throwIfAborted();
    if (this.#questions.size >= MAX_QUESTIONS) {
      throw new AgentEnvError("limit_exceeded", `${MAX_QUESTIONS} questions to this client are open already`);
    }
    this.#questionCount += 1;
    const id = `agentenv-${this.#questionCount}`;
    const question = `{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}`;
    const { promise, resolve, reject } = Promise.withResolvers<TextAnswer>();
    const cancel = () => {
      reject(signal.reason);
      const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } };
      this.say(JSON.stringify(cancelled), related);
    };
    this.#questions.set(id, { resolve, reject });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      if (this.#closed || !this.say(question, related)) throw nobodyListens();
      return await promise;
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#questions.delete(id);
    }
  }

  #answered(message: JSONRPCMessage, text: string): void {
    const id = (message as { id?: RequestId }).id;
    const question = typeof id === "string" ? this.#questions.get(id) : undefined;
    if (question === undefined) return;
    const kind = "error" in message ? "error" : "result";
    question.resolve({ kind, text: memberText(text, kind) ?? "{}" });
  }

  /** Lets the client's connection go while a request of it goes on; a client that can't come back keeps it. */
  release(id: RequestId, retryMs: number): void {
    if (this.#resumable) this.#exchanges.get(id)?.release(retryMs);
  }

  /** The protocol layer answers a cancelled request no more; its HTTP exchange has to end all the same. */
  #cancelled(notification: JSONRPCMessage): void {
    const { requestId: id, reason } =
      (notification as { params?: { requestId?: unknown; reason?: unknown } }).params ?? {};
    if (typeof id !== "string" && typeof id !== "number") return;
    if (!this.#exchanges.has(id)) {
      this.#early.add(id);
      return;
    }
    // A reason is a text; what else a client gives might not even have one.
    this.requests?.cancel(id, typeof reason === "string" ? reason : undefined);
    this.#early.over(id);
    this.#abandon(id);
  }

  #abandon(id: RequestId): void {
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined) return;
    this.#exchanges.delete(id);
    exchange.abandon(id);
    this.turns.answered();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.requests?.close();
    const open = new Set(this.#exchanges.values());
    for (const _id of this.#exchanges.keys()) this.turns.answered();
    this.#exchanges.clear();
    for (const exchange of open) exchange.sessionEnded();
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
    this.#unasked?.close();
    for (const { reject } of this.#questions.values()) {
      reject(new AgentEnvError("delivery_failed", "the client's session ended before it answered"));
    }
    this.onclose?.();
  }
}

function nobodyListens(): AgentEnvError {
  return new AgentEnvError("delivery_failed", "the client has no event stream open to be asked on", { applied: "no" });
}

/** The protocol layer takes the id 0 for none when a request is cancelled, so it sees another that no client sends. */
const ZERO = "agentenv\u00000";

function withoutZero(message: JSONRPCMessage): JSONRPCMessage {
  if (!("method" in message)) return message;
  if ("id" in message) return message.id === 0 ? { ...message, id: ZERO } : message;
  if (message.method !== "notifications/cancelled" || message.params?.requestId !== 0) return message;
  return { ...message, params: { ...message.params, requestId: ZERO } };
}
