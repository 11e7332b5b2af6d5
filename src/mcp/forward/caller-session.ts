import type { ClientSession, TextAnswer } from "../../environment/client-peer.js";
import type { ForwardedCall, ForwardedList, ListKind } from "../../environment/forwarded-server.js";
import { AgentEnvError } from "../../errors.js";
import { memberText, withMember } from "../../protocol/json-text.js";
import { RawError, type RawJson } from "../../protocol/raw-json.js";
import { type JsonObject, ROLE_META, SESSION_META } from "../../protocol/tool.js";
import { type LinkEvents, NotSent, type UpstreamLink } from "./link.js";
import type { ListCache } from "./list-cache.js";
import type { UpstreamRequest } from "./pending-request.js";
import { UpstreamSession } from "./upstream-session.js";

/** A list that has more pages than this is cut, since its server would never end. */
const MAX_PAGES = 1_000;

const METHODS: Record<ListKind, string> = {
  tools: "tools/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
  prompts: "prompts/list",
  skills: "skills/list",
};

/** What a server has to be told again when it comes back. */
const TOLD_AGAIN = new Set(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

const RESOURCE_UPDATED = "notifications/resources/updated";

/** What a server may say that its list has changed of. */
export type Changing = "tools" | "resources" | "prompts";

/** Which change concerns a list; no server says when its skills have changed. */
const CHANGES: Partial<Record<ListKind, Changing>> = {
  tools: "tools",
  resources: "resources",
  resourceTemplates: "resources",
  prompts: "prompts",
};

type Session = UpstreamSession<ForwardedCall>;

export interface CallerSessionOptions {
  connect(events: LinkEvents): UpstreamLink;
  /** What the server is told of its client, where that isn't the caller's own. */
  readonly hello?: { readonly capabilities: JsonObject; readonly clientInfo: JsonObject };
  readonly silenceMs: number;
  /** Whether requests say who calls, for a server that believes it. */
  readonly stamped: boolean;
  readonly lists: ListCache;
  /** Called when the server said that a list has changed. */
  changed(kind: Changing): void;
  /** Says something to the clients that no request of theirs is about. */
  say(method: string, text: string): void;
}

/**
 * What one caller, or all who share it, have at the server: a session that is opened when it is needed, and anew when the
 * server has gone. A request that was sent and not answered is never sent again.
 */
export class CallerSession {
  #current: Session | undefined;
  #opening: Promise<Session> | undefined;
  #client: ClientSession | undefined;
  #closed = false;
  /** By the kind of list, and by role where the server is told it. */
  readonly #lists = new Map<string, Promise<ForwardedList | RawError>>();
  /** What the server has to be told again when it comes back: its log level, and what is subscribed to, by URI. */
  #logLevel: string | undefined;
  readonly #subscriptions = new Map<string, string>();

  constructor(private readonly options: CallerSessionOptions) {}

  /** The client that used the session last. */
  get client(): ClientSession | undefined {
    return this.#client;
  }

  /** What the server answered to `initialize`. */
  async initializeResult(): Promise<JsonObject> {
    return (await this.#session()).initializeResult;
  }

  request(method: string, params: string, call: ForwardedCall): Promise<RawJson> {
    this.#client = call.client?.session ?? this.#client;
    const answer = this.#send(method, params, call.signal, call);
    return TOLD_AGAIN.has(method) ? this.#remembering(answer, method, params) : answer;
  }

  async #remembering(answered: Promise<RawJson>, method: string, params: string): Promise<RawJson> {
    const answer = await answered;
    if (!(answer instanceof RawError)) this.#remember(method, params);
    return answer;
  }

  /** A list, all pages of it; or the error that the server answers in its place. */
  async list(kind: ListKind, call?: ForwardedCall): Promise<ForwardedList | RawError> {
    this.#client = call?.client?.session ?? this.#client;
    const { capabilities } = await this.#session();
    const key = this.options.stamped ? `${kind} ${call?.role ?? ""}` : kind;
    const kept = this.#lists.get(key);
    if (kept !== undefined) return kept;
    const list = this.#read(kind, call);
    const { listChanged } = (capabilities[CHANGES[kind] ?? ""] ?? {}) as { listChanged?: boolean };
    if (listChanged === true) {
      // Kept until the server says that it has changed.
      this.#lists.set(key, list);
      list.catch(() => {
        if (this.#lists.get(key) === list) this.#lists.delete(key);
      });
    }
    return list;
  }

  async #read(kind: ListKind, call: ForwardedCall | undefined): Promise<ForwardedList | RawError> {
    // Others may wait for the same list, so it isn't given up with the call that asked first.
    const { signal } = new AbortController();
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? "{}" : `{"cursor":${cursor}}`;
      const page = await this.#send(METHODS[kind], params, signal, call);
      if (page instanceof RawError) return page;
      pages.push(page.text);
      cursor = page.text.includes('"nextCursor"') ? memberText(page.text, "nextCursor") : undefined;
    } while (cursor !== undefined && cursor !== "null" && pages.length < MAX_PAGES);
    return this.options.lists.read(kind, pages);
  }

  #send(method: string, params: string, signal: AbortSignal, tag: ForwardedCall | undefined): Promise<RawJson> {
    const { silenceMs, stamped } = this.options;
    const said = stamped && tag !== undefined ? stamp(params, tag) : params;
    const request = { method, params: said, signal, silenceMs, ...(tag === undefined ? {} : { tag }) };
    const live = this.#live;
    // Where the session is open already, nothing is waited for but the answer.
    if (live !== undefined) return this.#sendTo(live, request, true);
    return this.#session().then((session) => this.#sendTo(session, request, true));
  }

  #sendTo(session: Session, request: UpstreamRequest<ForwardedCall>, again: boolean): Promise<RawJson> {
    return session.request(request).catch(async (thrown: unknown) => {
      if (!(thrown instanceof NotSent)) throw thrown;
      // The server surely didn't get it, so sending it to a new session is no second time.
      if (again && session.closed) return this.#sendTo(await this.#session(), request, false);
      throw new AgentEnvError("device_unavailable", `the server behind didn't take the request: ${thrown.message}`, {
        cause: thrown,
      });
    });
  }

  /** Passes a client's notification on, where there is a session. */
  notify(message: string): void {
    if (this.#current?.closed === false) this.#current.notify(message);
  }

  #remember(method: string, params: string): void {
    if (method === "logging/setLevel") {
      this.#logLevel = params;
      return;
    }
    const uri = memberText(params, "uri") ?? "";
    if (method === "resources/subscribe") this.#subscriptions.set(uri, params);
    else this.#subscriptions.delete(uri);
  }

  /** The session that is open, if there is one. */
  get #live(): Session | undefined {
    return !this.#closed && this.#current?.closed === false ? this.#current : undefined;
  }

  async #session(): Promise<Session> {
    if (this.#closed) throw ended();
    if (this.#live !== undefined) return this.#live;
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<Session> {
    this.#lists.clear();
    const again = this.#current !== undefined;
    const hello = this.options.hello ?? {
      capabilities: this.#client?.capabilities ?? {},
      clientInfo: this.#client?.clientInfo ?? { name: "agentenv", version: "1" },
    };
    const session = await UpstreamSession.open<ForwardedCall>((events) => this.options.connect(events), hello, {
      notification: (method, text, related) => this.#heard(method, text, related),
      question: (method, params, related, signal) => this.#asked(method, params, related, signal),
    });
    if (this.#closed) {
      await session.close();
      throw ended();
    }
    this.#current = session;
    if (again) await this.#restore(session);
    return session;
  }

  async #restore(session: Session): Promise<void> {
    const { silenceMs } = this.options;
    const { signal } = new AbortController();
    const tell = (method: string, params: string) => session.request({ method, params, signal, silenceMs });
    const subscriptions = [...this.#subscriptions.values()].map((params) => tell("resources/subscribe", params));
    const level = this.#logLevel === undefined ? [] : [tell("logging/setLevel", this.#logLevel)];
    await Promise.allSettled([...level, ...subscriptions]);
  }

  #heard(method: string, text: string, related: ForwardedCall | undefined): void {
    const changing = /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(method)?.[1] as
      | Changing
      | undefined;
    if (changing !== undefined) {
      for (const key of this.#lists.keys()) {
        if (CHANGES[key.split(" ", 1)[0] as ListKind] === changing) this.#lists.delete(key);
      }
      this.options.changed(changing);
    }
    // Over a connection that doesn't tell, what is said during a call is taken for the call's, unless it never is.
    const forAll = changing !== undefined || method === RESOURCE_UPDATED;
    const shared = this.options.hello !== undefined;
    const { client } = (forAll ? (shared ? undefined : related) : (related ?? this.#theOneWaiting())) ?? {};
    if (client?.session.say(text, client.requestId) !== true) this.options.say(method, text);
  }

  /** Whose call is in the works, when it is one client's alone. */
  #theOneWaiting(): ForwardedCall | undefined {
    const waiting = this.#current?.waiting ?? [];
    const newest = waiting.at(-1);
    return waiting.every((call) => call.client?.session === newest?.client?.session) ? newest : undefined;
  }

  async #asked(
    method: string,
    params: string,
    related: ForwardedCall | undefined,
    signal: AbortSignal,
  ): Promise<TextAnswer> {
    const call = related ?? this.#theOneWaiting();
    const client = call?.client?.session ?? (this.options.hello === undefined ? this.#client : undefined);
    // A question that nobody says a call has asked is put there only if the client can't be asked otherwise.
    const guessed = related === undefined && client?.listening === true;
    if (client !== undefined) return client.ask(method, params, guessed ? undefined : call?.client?.requestId, signal);
    if (method === "roots/list") return { kind: "result", text: '{"roots":[]}' };
    return { kind: "error", text: '{"code":-32601,"message":"Method not found"}' };
  }

  /** Ends the session at the server. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#lists.clear();
    await this.#opening?.catch(() => {});
    await this.#current?.close();
  }
}

/** Says in a request's `_meta` who calls, whatever the client said there. Source: AgentEnv protocol 1.0, "Who is calling". */
function stamp(params: string, { caller, role }: ForwardedCall): string {
  const meta = memberText(params, "_meta") ?? "{}";
  const session = caller.session === undefined ? meta : withMember(meta, SESSION_META, JSON.stringify(caller.session));
  return withMember(params, "_meta", withMember(session, ROLE_META, JSON.stringify(role ?? "default")));
}

function ended(): AgentEnvError {
  return new AgentEnvError("device_unavailable", "the session with the server behind has ended");
}
