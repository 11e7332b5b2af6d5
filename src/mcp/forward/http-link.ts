import { setTimeout as sleep } from "node:timers/promises";
import { Agent, type Dispatcher, errors, request } from "undici";
import { elementsOf } from "../../protocol/json-text.js";
import { EventReader } from "./event-reader.js";
import { type LinkEvents, NotSent, type UpstreamLink } from "./link.js";

const CONNECT_MS = 10_000;
/** How often a broken stream is taken up again, and when, unless the server says. */
const RESUMES = 20;
const RESUME_MS = 1_000;
const MAX_ERROR_BYTES = 64 << 10;

export interface HttpOptions {
  readonly url: string;
  /** The connections, which all sessions at the server share; not closed by this one. */
  readonly dispatcher: Dispatcher;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Connections to one server. A call's deadline is its caller's to set, so they have none of their own. */
export function upstreamAgent(): Agent {
  return new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 });
}

/** An MCP server over streamable HTTP: a POST a message, and a GET for what it says unasked. */
export class HttpLink implements UpstreamLink {
  readonly relates = true;
  readonly #closing = new AbortController();
  /** What lets go of the exchange of a request. */
  readonly #exchanges = new Map<number, AbortController>();
  #session: string | undefined;
  #version: string | undefined;
  #gone = false;

  constructor(
    private readonly options: HttpOptions,
    private readonly events: LinkEvents,
  ) {}

  async send(message: string, id?: number): Promise<void> {
    if (this.#gone) throw new NotSent("the session has ended");
    const abort = new AbortController();
    if (id !== undefined) this.#exchanges.set(id, abort);
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#request("POST", abort.signal, message);
    } catch (thrown) {
      if (id !== undefined) this.#exchanges.delete(id);
      if (abort.signal.aborted) return;
      if (neverConnected(thrown)) throw new NotSent("the server can't be reached", { cause: thrown });
      throw thrown;
    }
    this.#session ??= header(response, "mcp-session-id");
    if (response.statusCode >= 400) {
      if (id !== undefined) this.#exchanges.delete(id);
      await this.#refused(response, id);
      return;
    }
    if (id === undefined) {
      await response.body.dump();
      return;
    }
    void this.#answer(response, id, abort);
  }

  /** The server refused a message. A JSON-RPC error of its own for that request is its answer. */
  async #refused(response: Dispatcher.ResponseData, id: number | undefined): Promise<void> {
    const { statusCode } = response;
    const text = (await response.body.text()).slice(0, MAX_ERROR_BYTES);
    if (id !== undefined && isErrorOf(text, id)) {
      this.events.message(text, id);
      return;
    }
    // A failure behind the server's door may have come after the effect; a refusal at the door did not.
    const reason = `the server answered HTTP ${statusCode}`;
    const refusal = statusCode >= 500 ? new Error(reason) : new NotSent(reason);
    const gone = await this.#sessionIsGone(statusCode);
    if (id !== undefined) this.events.lost(id, refusal);
    if (gone) this.#end(new Error("the server has ended the session"));
    throw refusal;
  }

  /** A server that doesn't know a session says 404; some say 400, which may be about the message alone: a ping tells. */
  async #sessionIsGone(statusCode: number): Promise<boolean> {
    if (this.#session === undefined || (statusCode !== 400 && statusCode !== 404)) return false;
    if (statusCode === 404) return true;
    const ping = '{"jsonrpc":"2.0","id":"agentenv-ping","method":"ping"}';
    const { statusCode: pinged, body } = await this.#request("POST", AbortSignal.timeout(CONNECT_MS), ping);
    await body.dump();
    return pinged === 400 || pinged === 404;
  }

  async #answer(response: Dispatcher.ResponseData, id: number, abort: AbortController): Promise<void> {
    let answered = false;
    const take = (text: string): void => {
      answered ||= isAnswerOf(text, id);
      this.events.message(text, id);
    };
    try {
      if (header(response, "content-type")?.startsWith("application/json")) {
        for (const text of messagesOf(await response.body.text())) take(text);
      } else {
        await this.#follow(response, take, () => answered, abort.signal);
      }
      if (!answered && !abort.signal.aborted) throw new Error("the server ended its answer without the answer");
    } catch (thrown) {
      if (!abort.signal.aborted) this.events.lost(id, thrown instanceof Error ? thrown : new Error(String(thrown)));
    } finally {
      this.#exchanges.delete(id);
    }
  }

  /** Reads an event stream to its end, and takes it up again where it broke off before what is waited for came. */
  async #follow(
    first: Dispatcher.ResponseData,
    take: (text: string) => void,
    done: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    let last: string | undefined;
    let response = first;
    for (let resumes = 0; ; resumes += 1) {
      const reader = new EventReader(({ data, id }) => {
        last = id ?? last;
        if (data.trim() !== "") take(data);
      });
      let broken: unknown;
      try {
        for await (const chunk of response.body) reader.push(chunk as Uint8Array);
      } catch (thrown) {
        broken = thrown;
      }
      if (done() || signal.aborted) return;
      if (last === undefined || resumes === RESUMES) {
        if (broken !== undefined) throw broken;
        return;
      }
      await sleep(reader.retryMs ?? RESUME_MS, undefined, { signal });
      response = await this.#request("GET", signal, undefined, last);
      if (response.statusCode !== 200) {
        await response.body.dump();
        throw new Error(`the server answered HTTP ${response.statusCode} to a stream that was taken up again`);
      }
    }
  }

  initialized(protocolVersion: string): void {
    this.#version = protocolVersion;
  }

  ready(): void {
    void this.#listen();
  }

  /** Listens to what the server says unasked, where it has a stream for it. */
  async #listen(): Promise<void> {
    const { signal } = this.#closing;
    try {
      const response = await this.#request("GET", signal);
      if (response.statusCode !== 200) {
        await response.body.dump();
        return;
      }
      await this.#follow(
        response,
        (text) => this.events.message(text),
        () => this.#gone,
        signal,
      );
    } catch {
      // The next request finds out whether the server is still there.
    }
  }

  forget(id: number): void {
    this.#exchanges.get(id)?.abort();
    this.#exchanges.delete(id);
  }

  #request(method: "POST" | "GET", signal: AbortSignal, body?: string, lastEventId?: string) {
    return request(this.options.url, {
      method,
      dispatcher: this.options.dispatcher,
      signal,
      headers: {
        ...this.options.headers,
        accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
        ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      ...(body === undefined ? {} : { body }),
    });
  }

  #end(reason: Error): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#closing.abort();
    this.events.closed(reason);
  }

  /** Ends the session at the server too. */
  async close(): Promise<void> {
    if (!this.#gone && this.#session !== undefined) {
      const headers = { ...this.options.headers, "mcp-session-id": this.#session };
      const deleted = request(this.options.url, {
        method: "DELETE",
        dispatcher: this.options.dispatcher,
        headers,
        signal: AbortSignal.timeout(1_000),
      });
      await deleted.then(({ body }) => body.dump()).catch(() => {});
    }
    this.#end(new Error("the connection was closed"));
    for (const abort of this.#exchanges.values()) abort.abort();
  }
}

function header({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Whether nothing was written, since there was no connection to write to. */
function neverConnected(thrown: unknown): boolean {
  if (thrown instanceof errors.ConnectTimeoutError) return true;
  const { syscall, code } = thrown as NodeJS.ErrnoException;
  return syscall === "connect" || syscall === "getaddrinfo" || code === "ECONNREFUSED";
}

/** The messages of a body, which are several in a batch. What is no JSON is one that says nothing: it has no elements. */
function messagesOf(text: string): string[] {
  if (!/^\s*\[/.test(text) || !isJson(text)) return [text];
  return (elementsOf(text) ?? []).map(({ start, end }) => text.slice(start, end));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isAnswerOf(text: string, id: number): boolean {
  try {
    const message = JSON.parse(text) as { id?: unknown; method?: unknown };
    return message.id === id && message.method === undefined;
  } catch {
    return false;
  }
}

function isErrorOf(text: string, id: number): boolean {
  return isAnswerOf(text, id) && "error" in (JSON.parse(text) as object);
}
