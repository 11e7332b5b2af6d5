import type { IncomingMessage, ServerResponse } from "node:http";
import type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { errorBody, event, INVALID_REQUEST, type Incoming, REFUSED, serialize } from "./wire.js";

/** How often an open event stream says that it lives, so that nothing between the two ends closes it. */
const KEEP_ALIVE_MS = 15_000;
/** A client that reads its event stream slower than this much is written to it is disconnected. */
const MAX_UNREAD_BYTES = 64 << 20;

/**
 * One MCP session over streamable HTTP. A request is answered with plain JSON when its answer is the first thing to say,
 * and as an event stream when a notification or a request to the client comes before it; both are the specification's
 * (2025-11-25, "Sending messages to the server"), and plain JSON is what keeps a call short. Results that are JSON text
 * already (RawJson) are sent as they are, which is why the transport is ours.
 */
export class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;

  readonly #exchanges = new Map<RequestId, Exchange>();
  #stream: ServerResponse | undefined;
  #closed = false;

  constructor(
    readonly sessionId: string,
    /** Called whenever the session is used. */
    private readonly used: () => void,
  ) {}

  /** Whether a request is being answered or an event stream is open. */
  get busy(): boolean {
    return this.#exchanges.size > 0 || this.#stream !== undefined;
  }

  get inFlight(): number {
    return this.#exchanges.size;
  }

  async start(): Promise<void> {}

  /** Takes the messages of one POST; the answer to its requests goes to `response`, whenever it comes. */
  receive(request: IncomingMessage, response: ServerResponse, incoming: Incoming): void {
    const ids = incoming.messages.flatMap((each) => ("method" in each && "id" in each ? [each.id] : []));
    if (ids.some((id) => this.#exchanges.has(id)) || new Set(ids).size < ids.length) {
      answer(
        response,
        400,
        errorBody(INVALID_REQUEST, "Invalid Request: a request with that id is still being answered"),
      );
      return;
    }
    const exchange = ids.length > 0 ? new Exchange(response, ids, incoming.batch, this.sessionId) : undefined;
    if (exchange !== undefined) for (const id of ids) this.#exchanges.set(id, exchange);
    const extra: MessageExtraInfo = { requestInfo: { headers: request.headers } };
    for (const each of incoming.messages) {
      this.onmessage?.(each, extra);
      if ("method" in each && each.method === "notifications/cancelled") this.#cancelled(each);
    }
    if (exchange === undefined) answer(response, 202, "");
  }

  /** Opens the stream for what the server says unasked. One a session. */
  openStream(response: ServerResponse): void {
    if (this.#stream !== undefined) {
      answer(response, 409, errorBody(REFUSED, "Conflict: this session has an event stream already"));
      return;
    }
    this.#stream = response;
    startStream(response, this.sessionId);
    response.once("close", () => {
      if (this.#stream === response) this.#stream = undefined;
      this.used();
    });
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!("method" in message)) {
      const id = message.id;
      const exchange = id === undefined ? undefined : this.#exchanges.get(id);
      if (exchange === undefined || id === undefined) return;
      this.#exchanges.delete(id);
      exchange.respond(id, serialize(message));
      this.used();
      return;
    }
    const related = options?.relatedRequestId;
    const exchange = related === undefined ? undefined : this.#exchanges.get(related);
    if (exchange !== undefined) exchange.say(serialize(message));
    else if (this.#stream !== undefined) write(this.#stream, event(serialize(message)));
    // What nobody listens to can't be delivered; only a request has someone waiting for it.
    else if ("id" in message) throw new Error("the client has no event stream open to be asked on");
  }

  /** The protocol layer answers a cancelled request no more; its HTTP exchange has to end all the same. */
  #cancelled(notification: JSONRPCMessage): void {
    const id = (notification as { params?: { requestId?: RequestId } }).params?.requestId;
    const exchange = id === undefined ? undefined : this.#exchanges.get(id);
    if (exchange === undefined || id === undefined) return;
    this.#exchanges.delete(id);
    exchange.abandon(id);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const open = new Set(this.#exchanges.values());
    this.#exchanges.clear();
    for (const exchange of open) exchange.end();
    this.#stream?.end();
    this.#stream = undefined;
    this.onclose?.();
  }
}

/** The answering of one POST. */
class Exchange {
  readonly #waiting: Set<RequestId>;
  readonly #ready: string[] = [];
  #streaming = false;

  constructor(
    private readonly response: ServerResponse,
    ids: RequestId[],
    private readonly batch: boolean,
    private readonly sessionId: string,
  ) {
    this.#waiting = new Set(ids);
  }

  respond(id: RequestId, text: string): void {
    this.#waiting.delete(id);
    if (this.#streaming) write(this.response, event(text));
    else this.#ready.push(text);
    if (this.#waiting.size === 0) this.end();
  }

  /** Says something before the answer: from here on it is an event stream. */
  say(text: string): void {
    if (!this.#streaming) {
      this.#streaming = true;
      startStream(this.response, this.sessionId);
      for (const ready of this.#ready.splice(0)) write(this.response, event(ready));
    }
    write(this.response, event(text));
  }

  abandon(id: RequestId): void {
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.end();
  }

  end(): void {
    if (this.response.writableEnded) return;
    if (this.#streaming) {
      this.response.end();
    } else if (this.#ready.length === 0) {
      // Every request was cancelled: an event stream without an event is the answer that says nothing.
      startStream(this.response, this.sessionId);
      this.response.end();
    } else {
      const text = this.batch ? `[${this.#ready.join(",")}]` : (this.#ready[0] as string);
      answer(this.response, 200, text, this.sessionId);
    }
  }
}

/** Answers with a JSON body, or with none where it is empty. */
export function answer(response: ServerResponse, status: number, body: string, sessionId?: string): void {
  if (response.headersSent || response.destroyed) return;
  const session = sessionId === undefined ? {} : { "mcp-session-id": sessionId };
  if (body === "") {
    response.writeHead(status, { ...session, "content-length": 0 }).end();
    return;
  }
  const bytes = Buffer.from(body, "utf8");
  response
    .writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...session })
    .end(bytes);
}

function startStream(response: ServerResponse, sessionId: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    "mcp-session-id": sessionId,
  });
  response.flushHeaders();
  const keepAlive = setInterval(() => write(response, ": alive\n\n"), KEEP_ALIVE_MS).unref();
  response.once("close", () => clearInterval(keepAlive));
}

function write(response: ServerResponse, text: string): void {
  if (response.destroyed || response.writableEnded) return;
  response.write(text);
  if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
}
