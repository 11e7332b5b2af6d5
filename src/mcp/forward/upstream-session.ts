import { LATEST_PROTOCOL_VERSION } from "@modelcontextprotocol/sdk/types.js";
import type { TextAnswer } from "../../environment/client-peer.js";
import { AgentEnvError, messageOf } from "../../errors.js";
import { membersOf, memberText, parseExact, withMember } from "../../protocol/json-text.js";
import { RawError, RawJson } from "../../protocol/raw-json.js";
import type { JsonObject } from "../../protocol/tool.js";
import { type LinkEvents, NotSent, type UpstreamLink } from "./link.js";
import { PendingRequest, type UpstreamRequest } from "./pending-request.js";

/** How long a server may take to answer `initialize`. */
const INITIALIZE_MS = 30_000;
/** How often it is looked, at least, whether the server is silent about a request. */
const SILENCE_CHECK_MS = 1_000;

/** What the server says of its own accord. `related` is the request that it says it with, where that is known. */
export interface UpstreamEvents<Tag> {
  notification(method: string, text: string, related: Tag | undefined): void;
  /** A question to the client; `params` is JSON text. What it throws is answered as an error. */
  question(method: string, params: string, related: Tag | undefined, signal: AbortSignal): Promise<TextAnswer>;
}

/**
 * An MCP session at another server. What goes through it stays text: parameters as they come, results and errors as the
 * server wrote them.
 */
export class UpstreamSession<Tag> {
  readonly #link: UpstreamLink;
  readonly #pending = new Map<number, PendingRequest<Tag>>();
  /** Progress tokens in use, in JSON → the request's id. */
  readonly #tokens = new Map<string, number>();
  readonly #questions = new Map<string, AbortController>();
  #lastId = 0;
  #listening: NodeJS.Timeout | undefined;
  #listenMs = 0;
  #closed: Error | undefined;
  /** What the server answered to `initialize`. */
  initializeResult: JsonObject = {};

  private constructor(
    connect: (events: LinkEvents) => UpstreamLink,
    private readonly events: UpstreamEvents<Tag>,
  ) {
    this.#link = connect({
      message: (text, related) => this.#message(text, related),
      lost: (id, reason) => this.#pending.get(id)?.failed(reason),
      closed: (reason) => this.#lose(reason),
    });
  }

  /** Connects and initializes. Throws `device_unavailable`. */
  static async open<Tag>(
    connect: (events: LinkEvents) => UpstreamLink,
    hello: { capabilities: JsonObject; clientInfo: JsonObject },
    events: UpstreamEvents<Tag>,
  ): Promise<UpstreamSession<Tag>> {
    const session = new UpstreamSession<Tag>(connect, events);
    try {
      const params = JSON.stringify({ protocolVersion: LATEST_PROTOCOL_VERSION, ...hello });
      const never = new AbortController().signal;
      const answer = await session.request({ method: "initialize", params, signal: never, silenceMs: INITIALIZE_MS });
      if (answer instanceof RawError) throw new Error(`it refused initialize: ${answer.text.slice(0, 500)}`);
      session.initializeResult = parseExact(answer.text) as JsonObject;
      session.#link.initialized?.(String(session.initializeResult.protocolVersion));
      await session.#link.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      session.#link.ready?.();
      return session;
    } catch (thrown) {
      await session.close();
      throw new AgentEnvError("device_unavailable", `the server behind can't be used: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  get capabilities(): JsonObject {
    return (this.initializeResult.capabilities ?? {}) as JsonObject;
  }

  /**
   * Everyone whose request isn't answered and may be what a message that names no request is about: nobody, where the
   * connection would have told.
   */
  get waiting(): Tag[] {
    if (this.#link.relates) return [];
    return [...this.#pending.values()].flatMap(({ request }) => (request.tag === undefined ? [] : [request.tag]));
  }

  /**
   * Sends a request and answers its result, or its error as a RawError. Throws a NotSent where the server surely didn't get
   * it, `timeout`, `delivery_failed` where its answer is lost, and the signal's reason.
   */
  request(request: UpstreamRequest<Tag>): Promise<RawJson> {
    if (request.signal.aborted) return Promise.reject(request.signal.reason);
    if (this.#closed !== undefined) {
      return Promise.reject(new NotSent("the session has ended", { cause: this.#closed }));
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const { params, token, original } = this.#withFreeToken(request.params);
    const pending = new PendingRequest(request, original, (givenUp) => {
      this.#pending.delete(id);
      if (token !== undefined) this.#tokens.delete(token);
      if (givenUp === undefined) return;
      this.#tell("notifications/cancelled", { requestId: id, reason: messageOf(givenUp.reason) });
      this.#link.forget?.(id);
    });
    this.#pending.set(id, pending);
    this.#listen(request.silenceMs);
    if (token !== undefined) this.#tokens.set(token, id);
    const fail = (reason: unknown): void => this.#pending.get(id)?.failed(reason);
    try {
      const message = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(request.method)},"params":${params}}`;
      this.#link.send(message, id)?.catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
    return pending.answer;
  }

  /** Looks for requests that the server is silent about now and then, as long as there are requests. */
  #listen(silenceMs: number): void {
    const everyMs = Math.min(silenceMs / 4, SILENCE_CHECK_MS);
    if (this.#listening !== undefined && this.#listenMs <= everyMs) return;
    clearTimeout(this.#listening);
    this.#listenMs = everyMs;
    this.#listening = setTimeout(() => {
      this.#listening = undefined;
      for (const pending of this.#pending.values()) pending.checkSilence();
      for (const { request } of this.#pending.values()) this.#listen(request.silenceMs);
    }, everyMs).unref();
  }

  /** A request's params, with another progress token where a request in the works has the same. */
  #withFreeToken(params: string): { params: string; token?: string; original?: string } {
    if (!params.includes('"progressToken"')) return { params };
    const meta = memberText(params, "_meta");
    const token = meta === undefined ? undefined : memberText(meta, "progressToken");
    if (meta === undefined || token === undefined) return { params };
    const key = JSON.stringify(JSON.parse(token));
    if (!this.#tokens.has(key)) return { params, token: key };
    const fresh = JSON.stringify(`agentenv-${this.#lastId}`);
    return {
      params: withMember(params, "_meta", withMember(meta, "progressToken", fresh)),
      token: fresh,
      original: token,
    };
  }

  /** Passes a client's notification on as it is. */
  notify(text: string): void {
    try {
      this.#link.send(text)?.catch(() => {});
    } catch (thrown) {
      // What nobody is there to hear is lost.
      if (!(thrown instanceof NotSent)) throw thrown;
    }
  }

  #tell(method: string, params: JsonObject): void {
    if (this.#closed === undefined) this.notify(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  #message(text: string, related: number | undefined): void {
    let message: { id?: unknown; method?: unknown; params?: JsonObject };
    try {
      message = JSON.parse(text) as typeof message;
    } catch {
      return;
    }
    if (typeof message !== "object" || message === null) return;
    const { id, method } = message;
    if (typeof method !== "string") {
      this.#answered(id, text);
      return;
    }
    const pending = related === undefined ? undefined : this.#pending.get(related);
    pending?.alive();
    if (id !== undefined) void this.#asked(id, method, text, pending?.request.tag);
    else if (method === "notifications/progress") this.#progress(message.params, text);
    else if (method === "notifications/cancelled")
      this.#questions.get(JSON.stringify(message.params?.requestId))?.abort();
    else this.events.notification(method, text, pending?.request.tag);
  }

  #answered(id: unknown, text: string): void {
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (pending === undefined) return;
    const members = membersOf(text);
    const [result, error] = [members?.get("result"), members?.get("error")];
    if (error !== undefined) pending.answered(new RawError(text.slice(error.start, error.end)));
    else if (result !== undefined) pending.answered(new RawJson(text.slice(result.start, result.end)));
  }

  #progress(params: JsonObject | undefined, text: string): void {
    const id = this.#tokens.get(JSON.stringify(params?.progressToken));
    const pending = id === undefined ? undefined : this.#pending.get(id);
    // What comes for no request is too late, and must not reach a later one.
    if (pending === undefined) return;
    pending.alive();
    const { progressToken, request } = pending;
    const told =
      progressToken === undefined
        ? text
        : withMember(text, "params", withMember(memberText(text, "params") ?? "{}", "progressToken", progressToken));
    this.events.notification("notifications/progress", told, request.tag);
  }

  async #asked(id: unknown, method: string, text: string, related: Tag | undefined): Promise<void> {
    const key = JSON.stringify(id);
    const abort = new AbortController();
    this.#questions.set(key, abort);
    let answer: TextAnswer;
    try {
      answer =
        method === "ping"
          ? { kind: "result", text: "{}" }
          : await this.events.question(method, memberText(text, "params") ?? "{}", related, abort.signal);
    } catch (thrown) {
      answer = { kind: "error", text: JSON.stringify({ code: -32603, message: messageOf(thrown) }) };
    } finally {
      this.#questions.delete(key);
    }
    if (abort.signal.aborted || this.#closed !== undefined) return;
    const written = memberText(text, "id") ?? key;
    this.notify(`{"jsonrpc":"2.0","id":${written},"${answer.kind}":${answer.text}}`);
  }

  #lose(reason: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    clearTimeout(this.#listening);
    for (const pending of this.#pending.values()) pending.failed(reason);
    for (const question of this.#questions.values()) question.abort();
  }

  /** Ends the session, and the process that serves it. Idempotent. */
  async close(): Promise<void> {
    this.#lose(new Error("the session was closed"));
    await this.#link.close();
  }
}
