import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  isInitializeRequest,
  type JSONRPCMessage,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/sdk/types.js";
import type { Application } from "../environment/application.js";
import { CALLER_ENDS, type CallerEnd } from "../environment/caller.js";
import type { Skill } from "../skills/skill.js";
import { Callers } from "./callers.js";
import { answer } from "./http-answer.js";
import { ServedSkills } from "./served-skills.js";
import { McpSession } from "./session.js";
import { Wakefulness } from "./wakefulness.js";
import {
  BodyError,
  errorBody,
  INVALID_REQUEST,
  type Incoming,
  REFUSED,
  readMessages,
  SESSION_NOT_FOUND,
} from "./wire.js";

export interface McpOptions {
  /** After this long without a request or an open stream a session is closed. Default 30 minutes. */
  idleMs?: number;
  /** How many sessions may be open at once. Default 2,000. */
  maxSessions?: number;
  /** How many requests of one session may be in the works at once. Default 256. */
  maxInFlight?: number;
  /** Skills that are served beside the environment's own. */
  skills?: readonly Skill[];
}

/** What a client says of itself is kept as long as its session. */
const MAX_HELLO_LENGTH = 256 << 10;
/** Of how many sessions that have ended it is remembered why. */
const MAX_REMEMBERED = 4_096;

/** The `/mcp` endpoint: streamable HTTP, one server and one transport a session. */
export class McpEndpoint {
  readonly callers = new Callers();
  readonly #sessions = new Map<string, McpSession>();
  readonly #ends = new Set<Promise<void>>();
  /** Why sessions ended, the oldest first. */
  readonly #whys = new Map<string, CallerEnd>();
  readonly #idleMs: number;
  readonly #maxSessions: number;
  readonly #maxInFlight: number;
  readonly #sweep: NodeJS.Timeout;
  readonly #forgetListener: () => void;
  readonly #skills: ServedSkills;
  readonly #wakefulness = new Wakefulness();
  /** The last Accept header that was taken: most clients send but one, so it is read once. */
  #accepted: string | undefined;
  #closed = false;

  /** Throws SkillRefused for a skill that breaks the rules, SetupError for two of one name. */
  constructor(
    private readonly application: Application,
    options: McpOptions = {},
  ) {
    this.#skills = new ServedSkills(application, options.skills);
    this.#idleMs = options.idleMs ?? 30 * 60_000;
    this.#maxSessions = options.maxSessions ?? 2_000;
    this.#maxInFlight = options.maxInFlight ?? 256;
    this.#sweep = setInterval(() => this.#closeIdle(), Math.max(50, Math.min(this.#idleMs / 4, 10_000))).unref();
    this.#forgetListener = application.onChange((change) => {
      for (const session of this.#sessions.values()) session.tell(change);
    });
  }

  /** How many requests of all sessions are in the works. */
  get inFlight(): number {
    return this.#wakefulness.requests;
  }

  get sessionCount(): number {
    return this.#sessions.size;
  }

  /** Answers one HTTP request; `body` is a POST's. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
    switch (request.method) {
      case "POST":
        this.#post(request, response, body ?? Buffer.alloc(0));
        return;
      case "GET":
        this.#get(request, response);
        return;
      case "DELETE":
        this.#delete(request, response);
        return;
      default:
        response.setHeader("allow", "GET, POST, DELETE");
        answer(response, 405, errorBody(REFUSED, "Method not allowed: /mcp takes GET, POST and DELETE"));
    }
  }

  #post(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const { accept = "" } = request.headers;
    if (accept !== this.#accepted) {
      if (!accepts(accept, "application/json") || !accepts(accept, "text/event-stream")) {
        answer(response, 406, errorBody(REFUSED, "Not Acceptable: accept both application/json and text/event-stream"));
        return;
      }
      this.#accepted = accept;
    }
    if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) {
      answer(response, 415, errorBody(REFUSED, "Unsupported Media Type: the content type is application/json"));
      return;
    }
    let incoming: Incoming;
    try {
      incoming = readMessages(body);
    } catch (thrown) {
      if (!(thrown instanceof BodyError)) throw thrown;
      answer(response, 400, errorBody(thrown.code, thrown.message));
      return;
    }
    if (incoming.messages.some(isInitialize)) {
      this.#initialize(request, response, incoming);
      return;
    }
    const session = this.#find(request, response);
    if (session === undefined) return;
    if (session.transport.inFlight + incoming.messages.length > this.#maxInFlight) {
      const message = `this session has ${this.#maxInFlight} requests in the works already`;
      answer(response, 429, errorBody(REFUSED, message, { code: "limit_exceeded", retryable: true, applied: "no" }));
      return;
    }
    session.transport.receive(request, response, incoming);
  }

  #initialize(request: IncomingMessage, response: ServerResponse, incoming: Incoming): void {
    if (incoming.messages.length > 1 || request.headers["mcp-session-id"] !== undefined) {
      answer(response, 400, errorBody(INVALID_REQUEST, "Invalid Request: initialize comes alone and once a session"));
      return;
    }
    if ((incoming.texts[0]?.length ?? 0) > MAX_HELLO_LENGTH) {
      const message = `Invalid Request: initialize is longer than ${MAX_HELLO_LENGTH} characters`;
      answer(response, 400, errorBody(INVALID_REQUEST, message));
      return;
    }
    if (this.#closed || this.#sessions.size >= this.#maxSessions) {
      const message = this.#closed ? "the server is stopping" : `${this.#maxSessions} sessions are open already`;
      const hint = this.#closed
        ? "connect again once it is back"
        : `end sessions that nobody uses with DELETE; one that isn't used ends after ${this.#idleMs / 1000} s by itself`;
      answer(
        response,
        503,
        errorBody(REFUSED, message, { code: "limit_exceeded", retryable: true, applied: "no", hint }),
      );
      return;
    }
    const id = randomUUID();
    const [message] = incoming.messages;
    const hello = (message !== undefined && "method" in message ? message.params : undefined) ?? {};
    const closed = () => this.#forget(id);
    const session = new McpSession(this.application, this.#skills, this.callers, this.#wakefulness, id, hello, closed);
    this.#sessions.set(id, session);
    session.transport.receive(request, response, incoming);
  }

  #get(request: IncomingMessage, response: ServerResponse): void {
    if (!accepts(request.headers.accept ?? "", "text/event-stream")) {
      answer(response, 406, errorBody(REFUSED, "Not Acceptable: accept text/event-stream"));
      return;
    }
    const lastEventId = request.headers["last-event-id"];
    this.#find(request, response)?.transport.openStream(
      response,
      lastEventId === undefined ? undefined : String(lastEventId),
    );
  }

  #delete(request: IncomingMessage, response: ServerResponse): void {
    const session = this.#find(request, response);
    if (session === undefined) return;
    void this.#end(session, "caller").then(() => answer(response, 200, ""));
  }

  /** The session that a request names; where there is none, the refusal is sent. */
  #find(request: IncomingMessage, response: ServerResponse): McpSession | undefined {
    const id = request.headers["mcp-session-id"];
    if (typeof id !== "string" || id === "") {
      answer(
        response,
        400,
        errorBody(REFUSED, "Bad Request: the header Mcp-Session-Id names the session; initialize first"),
      );
      return undefined;
    }
    const session = this.#sessions.get(id);
    if (session === undefined) {
      const why = this.#whys.get(id);
      const ended = why === undefined ? "it has ended or never was" : `it has ended, as ${CALLER_ENDS[why]}`;
      answer(response, 404, errorBody(SESSION_NOT_FOUND, `Session not found: ${ended}; initialize a new one`));
      return undefined;
    }
    const version = request.headers["mcp-protocol-version"];
    if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) {
      const message = `Bad Request: MCP-Protocol-Version is one of ${SUPPORTED_PROTOCOL_VERSIONS.join(", ")}`;
      answer(response, 400, errorBody(REFUSED, message));
      return undefined;
    }
    session.lastUsed = performance.now();
    return session;
  }

  #end(session: McpSession, why: CallerEnd): Promise<void> {
    if (!this.#whys.has(session.id)) this.#whys.set(session.id, why);
    const [oldest] = this.#whys.keys();
    if (this.#whys.size > MAX_REMEMBERED && oldest !== undefined) this.#whys.delete(oldest);
    return session.close();
  }

  #forget(id: string): void {
    this.#sessions.delete(id);
    const why = this.#whys.get(id) ?? "caller";
    const end = this.callers.sessionEnded(id, why).finally(() => this.#ends.delete(end));
    this.#ends.add(end);
  }

  #closeIdle(): void {
    const limit = performance.now() - this.#idleMs;
    for (const session of this.#sessions.values()) {
      if (session.lastUsed < limit && !session.transport.busy) void this.#end(session, "idle");
    }
  }

  /** Ends every session and lets go of what hangs on its callers. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    this.#forgetListener();
    await Promise.all([...this.#sessions.values()].map((session) => this.#end(session, "stopping")));
    await Promise.all(this.#ends);
    await this.application.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Looks at the method first, since a schema that doesn't fit costs more than one that does. */
function isInitialize(message: JSONRPCMessage): boolean {
  return "method" in message && message.method === "initialize" && isInitializeRequest(message);
}

/** Whether an Accept header takes a media type, by its own name or a wildcard. */
function accepts(header: string, type: string): boolean {
  const family = `${type.slice(0, type.indexOf("/"))}/*`;
  return header.split(",").some((part) => {
    const name = part.split(";", 1)[0]?.trim().toLowerCase();
    return name === type || name === family || name === "*/*";
  });
}
