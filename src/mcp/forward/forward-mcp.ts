import type { FastifyBaseLogger } from "fastify";
import type { Agent } from "undici";
import type { Caller } from "../../environment/caller.js";
import type {
  ForwardedCall,
  ForwardedCatalog,
  ForwardedChange,
  ForwardedList,
  ForwardedServer,
  ListKind,
} from "../../environment/forwarded-server.js";
import { AgentEnvError, messageOf, SetupError } from "../../errors.js";
import { RawError, type RawJson } from "../../protocol/raw-json.js";
import { SKILLS_EXTENSION } from "../../protocol/skill.js";
import type { JsonObject } from "../../protocol/tool.js";
import { CallerSession, type Changing } from "./caller-session.js";
import { HttpLink, upstreamAgent } from "./http-link.js";
import type { LinkEvents, UpstreamLink } from "./link.js";
import { ListCache } from "./list-cache.js";
import { StdioLink } from "./stdio-link.js";

/** How long changes of a list are gathered before the list is read again. */
const GATHER_MS = 50;
/** How long at most, where a server tells of changes and its list is the same each time. */
const MAX_GATHER_MS = 2_000;
/** How much is kept of what a program writes to its standard error, and how many lines of it are shown, where it doesn't come up. */
const SAID_CHARS = 4_000;
const SAID_LINES = 12;

/** Which server is forwarded, and how. */
export interface ForwardMcpOptions {
  /** The program that is the server, with its arguments: it speaks MCP over its standard input and output. */
  readonly command?: readonly [string, ...string[]];
  /** Or where it is served over streamable HTTP. */
  readonly url?: string;
  /** How errors name it. Default: the program's name, or the URL's host. */
  readonly name?: string;
  /** Added to the few variables that the program gets of our own environment, which hold no secret. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder that the program runs in. Default: this process's own, which `agentenv up` has in the session user's home. */
  readonly cwd?: string;
  /** Headers of each request to `url`, such as an Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether all callers share one session at the server. Default: each has its own, and a program is started for each.
   * A shared server can't tell who asks, and its questions to a client go unanswered while several wait.
   */
  readonly shared?: boolean;
  /** Says in each request's `_meta` what the caller's role and session are, for a server that is an environment. */
  readonly stamped?: boolean;
  /** How many sessions there may be at once. Default 256. */
  readonly maxSessions?: number;
  /** After this many milliseconds without a word from the server a request is given up. Default 110 seconds. */
  readonly silenceMs?: number;
  /** Where the program's standard error goes, at debug. */
  readonly log?: Pick<FastifyBaseLogger, "debug">;
}

/** What a session says that is there to see all that the server has. */
const EVERYTHING = {
  capabilities: {
    roots: { listChanged: true },
    sampling: { context: {}, tools: {} },
    elicitation: { form: {}, url: {} },
    tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
  },
  clientInfo: { name: "agentenv", version: "1" },
};

/** What a session at the server is for. */
interface SessionKind {
  /** It is there to see all that the server has, whatever the caller's client can do. */
  readonly seesAll?: boolean;
  /** What the server says in it of its own accord is told to nobody. */
  readonly deaf?: boolean;
  /** Gets what the program writes to its standard error. */
  readonly said?: (text: string) => void;
}

/**
 * Forwards all of another MCP server: its tools, resources, prompts, instructions, and what it says to its clients. JSON
 * goes through as it was written. Throws a SetupError for options that name no server.
 */
export function forwardMcp(options: ForwardMcpOptions): ForwardedServer {
  return new ForwardedMcp(options);
}

class ForwardedMcp implements ForwardedServer {
  readonly name: string;
  readonly #agent: Agent | undefined;
  readonly #lists = new ListCache();
  readonly #sessions = new Map<Caller, CallerSession>();
  #shared: CallerSession | undefined;
  /** Sessions that ask what is listed now. */
  readonly #asking = new Set<CallerSession>();
  #changed: (change: ForwardedChange) => void = () => {};
  readonly #gathering = new Map<Changing, NodeJS.Timeout>();
  /** A list as it was last read after a change, and how long changes of it are gathered. */
  readonly #read = new Map<Changing, { readonly list: ForwardedList; readonly gatherMs: number }>();
  #closed = false;

  constructor(private readonly options: ForwardMcpOptions) {
    const { command, url, name } = options;
    if ((command === undefined) === (url === undefined) || (url !== undefined && !URL.canParse(url))) {
      throw new SetupError("forwardMcp takes a command or a url", {
        hint: 'such as { command: ["npx", "-y", "a-server"] } or { url: "http://127.0.0.1:3001/mcp" }',
      });
    }
    this.name = name ?? (url === undefined ? String(command?.[0]) : new URL(url).host);
    this.#agent = url === undefined ? undefined : upstreamAgent();
  }

  async open(changed: (change: ForwardedChange) => void): Promise<ForwardedCatalog> {
    this.#changed = changed;
    let said = "";
    const keep = (text: string) => {
      said = `${said}${text}`.slice(-SAID_CHARS);
    };
    const session = this.#newSession({ seesAll: true, said: keep });
    try {
      const catalog = await readCatalog(session);
      if (this.options.shared) this.#shared = session;
      else await session.close();
      return catalog;
    } catch (thrown) {
      await session.close();
      throw new SetupError(`the MCP server ${this.name} can't be forwarded: ${messageOf(thrown)}`, {
        hint: this.#hint(said),
        cause: thrown,
      });
    }
  }

  /** What its author can do about a server that doesn't come up and wrote this. */
  #hint(said: string): string {
    const { command, cwd = process.cwd() } = this.options;
    if (command === undefined) return "start it by hand and see whether it answers initialize";
    const hint = `start it by hand in ${cwd}, where it ran (cwd names another folder), and see whether it answers initialize`;
    const lines = said.split(/[\r\n]+/).filter((line) => line.trim() !== "" && !/^\s+at /.test(line));
    return lines.length === 0 ? hint : [`${hint}; it wrote last:`, ...lines.slice(-SAID_LINES)].join("\n");
  }

  async list(kind: ListKind, call: ForwardedCall): Promise<ForwardedList | RawError> {
    return this.#of(call.caller).list(kind, call);
  }

  request(method: string, params: string, call: ForwardedCall): Promise<RawJson> {
    return this.#of(call.caller).request(method, params, call);
  }

  notify(message: string, caller: Caller): void {
    (this.#shared ?? this.#sessions.get(caller))?.notify(message);
  }

  #of(caller: Caller): CallerSession {
    if (this.#shared !== undefined) return this.#shared;
    const known = this.#sessions.get(caller);
    if (known !== undefined) return known;
    const { maxSessions = 256 } = this.options;
    if (this.#closed || caller.ended)
      throw new AgentEnvError("device_unavailable", `${this.name} is not served any more`);
    if (this.#sessions.size >= maxSessions) {
      throw new AgentEnvError("limit_exceeded", `${maxSessions} callers have a session at ${this.name} already`);
    }
    const session = this.#newSession();
    this.#sessions.set(caller, session);
    caller.onEnd(async () => {
      this.#sessions.delete(caller);
      await session.close();
    });
    return session;
  }

  #newSession({ seesAll = false, deaf = false, said }: SessionKind = {}): CallerSession {
    const session: CallerSession = new CallerSession({
      connect: (events) => this.#connect(events, said),
      silenceMs: this.options.silenceMs ?? 110_000,
      stamped: this.options.stamped ?? false,
      lists: this.#lists,
      changed: (kind) => !deaf && this.#gather(kind, session),
      say: (method, text) => !deaf && this.#say(method, text, session),
      ...(seesAll ? { hello: EVERYTHING } : {}),
    });
    return session;
  }

  #connect(events: LinkEvents, said: ((text: string) => void) | undefined): UpstreamLink {
    const { command, url, env, cwd, headers, log } = this.options;
    if (command !== undefined) {
      return new StdioLink(
        { command, log, said, ...(env === undefined ? {} : { env }), ...(cwd === undefined ? {} : { cwd }) },
        events,
      );
    }
    const dispatcher = this.#agent as Agent;
    return new HttpLink({ url: url as string, dispatcher, ...(headers === undefined ? {} : { headers }) }, events);
  }

  /** What is said outside of a call goes to the caller whose session it is; of a shared one to everybody. */
  #say(method: string, text: string, session: CallerSession): void {
    if (session === this.#shared) this.#changed({ kind: "said", method, text });
    else session.client?.say(text);
  }

  /** Servers tell of each of their changes; the list is read again once after some of them. */
  #gather(kind: Changing, session: CallerSession): void {
    if (this.#gathering.has(kind) || this.#closed) return;
    const timer = setTimeout(async () => {
      this.#gathering.delete(kind);
      const forAll = session === this.#shared || this.options.url !== undefined;
      const list = await this.#listAnew(kind, session).catch(() => undefined);
      if (list === undefined || list instanceof RawError || this.#closed) return;
      const last = this.#read.get(kind);
      const gatherMs = last?.list === list ? Math.min(last.gatherMs * 2, MAX_GATHER_MS) : GATHER_MS;
      this.#read.set(kind, { list, gatherMs });
      this.#changed({ kind, list, forAll });
    }, this.#read.get(kind)?.gatherMs ?? GATHER_MS);
    this.#gathering.set(kind, timer.unref());
  }

  /** A program tells of itself alone; a server of many sessions is asked in one that sees all, as when it was opened. */
  async #listAnew(kind: Changing, session: CallerSession): Promise<ForwardedList | RawError> {
    if (session === this.#shared || this.options.url === undefined) return session.list(kind);
    const asking = this.#newSession({ seesAll: true, deaf: true });
    this.#asking.add(asking);
    try {
      return await asking.list(kind);
    } finally {
      this.#asking.delete(asking);
      await asking.close();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#gathering.values()) clearTimeout(timer);
    const shared = this.#shared === undefined ? [] : [this.#shared];
    const sessions = [...this.#sessions.values(), ...this.#asking, ...shared];
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.close()));
    await this.#agent?.destroy();
  }
}

async function readCatalog(session: CallerSession): Promise<ForwardedCatalog> {
  const { capabilities = {}, instructions } = (await session.initializeResult()) as {
    capabilities?: JsonObject;
    instructions?: string;
  };
  const kinds = (["tools", "resources", "resourceTemplates", "prompts"] as const).filter((kind) =>
    Object.hasOwn(capabilities, kind === "resourceTemplates" ? "resources" : kind),
  );
  const listed: ListKind[] = Object.hasOwn((capabilities.extensions ?? {}) as object, SKILLS_EXTENSION)
    ? [...kinds, "skills"]
    : [...kinds];
  const lists = await Promise.all(listed.map(async (kind) => [kind, await session.list(kind)] as const));
  return {
    capabilities,
    instructions,
    lists: Object.fromEntries(lists.filter(([, list]) => !(list instanceof RawError))),
  };
}
