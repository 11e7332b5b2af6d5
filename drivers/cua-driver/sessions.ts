import type { ComputerLog } from "../../src/computer/log.js";
import { CALLER_ENDS, type Caller, type CallerEnd } from "../../src/environment/caller.js";
import { AgentEnvError, messageOf } from "../../src/errors.js";
import type { RawJson } from "../../src/protocol/raw-json.js";
import type { JsonObject } from "../../src/protocol/tool.js";
import type { ControlConnection } from "./control-connection.js";
import type { CallOptions, DaemonClient } from "./daemon-client.js";
import type { DaemonReply } from "./daemon-reply.js";

/** How long calls in flight may take to settle before their session is ended all the same, in milliseconds. */
export const SETTLE_MS = 1_000;

/** Why a session at the daemon came to its end. */
export type SessionEnd = (typeof CALLER_ENDS)[CallerEnd] | "its connection is gone" | "the daemon was restarted";

/** A call on its way: its answer, and when the daemon is done with it, which may be after a cancelled caller was answered. */
export interface SentCall {
  readonly reply: Promise<DaemonReply>;
  readonly settled: Promise<void>;
}

/**
 * One client's session at the daemon, as `cua-driver mcp` gives each of its clients one: a control connection held open,
 * and every call stamped with the session's id. It begins at the first call. Where the daemon went away the next call begins
 * another one under another id, since the daemon refuses an id whose connection closed.
 */
export class DaemonSession {
  readonly #client: DaemonClient;
  readonly #log: ComputerLog;
  readonly #settleMs: number;
  #control: ControlConnection | undefined;
  #beginning: Promise<ControlConnection> | undefined;
  /** The daemon that the last session was with. */
  #pid: number | undefined;
  #lastEnd: SessionEnd | undefined;
  #closing: Promise<void> | undefined;
  readonly #inFlight = new Set<Promise<void>>();

  constructor(client: DaemonClient, log: ComputerLog, settleMs = SETTLE_MS) {
    this.#client = client;
    this.#log = log;
    this.#settleMs = settleMs;
  }

  /** The id that calls carry now; undefined where no session is open. */
  get id(): string | undefined {
    return this.#control?.open ? this.#control.sessionId : undefined;
  }

  /** Why the last session ended, where one did. */
  get lastEnd(): SessionEnd | undefined {
    return this.#lastEnd;
  }

  /**
   * Sends a call in this session. `reply` rejects as `DaemonClient.call` does, with `device_unavailable` where no session
   * could be had, and with `target_unavailable` after `end`.
   */
  call(tool: string, args: JsonObject | RawJson, options: CallOptions): SentCall {
    if (this.#closing) return refused(this.#refusal(tool));
    const control = this.#control;
    let sent: SentCall;
    try {
      sent = control?.open
        ? this.#client.call(tool, args, options, control.sessionId)
        : this.#beginThenCall(tool, args, options);
    } catch (thrown) {
      return refused(thrown);
    }
    const settled = sent.settled;
    this.#inFlight.add(settled);
    void settled.then(() => this.#inFlight.delete(settled));
    return sent;
  }

  /**
   * Ends the session: later calls are refused, those in flight are given time to settle, and then the control connection
   * is closed. A call that comes through after that could begin a session that nobody ends, so what takes longer is
   * cleaned up after. Idempotent.
   */
  end(why: SessionEnd = CALLER_ENDS.caller): Promise<void> {
    this.#closing ??= this.#end(why);
    return this.#closing;
  }

  async #end(why: SessionEnd): Promise<void> {
    this.#lastEnd = why;
    const beginning = await this.#beginning?.catch(() => undefined);
    const control = this.#control ?? beginning;
    const settled = Promise.all(this.#inFlight).then(() => true);
    const late = !(await within(this.#settleMs, settled));
    control?.close();
    if (!late || !control) return;
    this.#log.warn({ session: control.sessionId }, "a session was ended with calls still running");
    void settled
      .then(() => this.#client.endSession(control.sessionId))
      .catch((thrown: unknown) => this.#log.warn({ session: control.sessionId }, messageOf(thrown)));
  }

  #beginThenCall(tool: string, args: JsonObject | RawJson, options: CallOptions): SentCall {
    const sending = this.#begin().then((control) => {
      if (options.signal?.aborted) throw cancelled(tool);
      return this.#client.call(tool, args, options, control.sessionId);
    });
    return {
      reply: sending.then((exchange) => exchange.reply),
      settled: sending.then(
        (exchange) => exchange.settled,
        () => undefined,
      ),
    };
  }

  /** Begins a session, once for all calls that need it at the same time. */
  #begin(): Promise<ControlConnection> {
    this.#beginning ??= this.#open().finally(() => {
      this.#beginning = undefined;
    });
    return this.#beginning;
  }

  async #open(): Promise<ControlConnection> {
    const pid = this.#client.knownPid;
    if (this.#pid !== pid && this.#lastEnd) this.#lastEnd = "the daemon was restarted";
    const control = await this.#client.beginSession(newSessionId()).catch((thrown: unknown) => {
      throw this.#lastEnd === undefined ? thrown : this.#withLastEnd(thrown);
    });
    this.#pid = pid;
    this.#control = control;
    this.#log.debug({ session: control.sessionId }, "a cua-driver session began");
    void control.gone.then(() => {
      if (this.#control === control) this.#control = undefined;
      if (this.#closing) return;
      this.#lastEnd = "its connection is gone";
      this.#log.warn({ session: control.sessionId }, "a cua-driver session's control connection is gone");
    });
    return control;
  }

  /** The refusal of a session in the place of one that has ended. */
  #withLastEnd(thrown: unknown): AgentEnvError {
    const { hint } = thrown as { hint?: string };
    return new AgentEnvError("device_unavailable", `${messageOf(thrown)}; the last one ended, as ${this.#lastEnd}`, {
      cause: thrown,
      ...(hint === undefined ? {} : { hint }),
    });
  }

  #refusal(tool: string): AgentEnvError {
    return new AgentEnvError("target_unavailable", `${tool} was not sent: its session has ended, as ${this.#lastEnd}`, {
      hint: "Connect anew: a new MCP session has a session of its own.",
    });
  }
}

/** The session of each caller. A caller's begins at its first forwarded call and ends with the caller. */
export class CallerSessions {
  readonly #sessions = new WeakMap<Caller, DaemonSession>();
  readonly #client: DaemonClient;
  readonly #log: ComputerLog;
  readonly #settleMs: number;

  constructor(client: DaemonClient, log: ComputerLog, settleMs = SETTLE_MS) {
    this.#client = client;
    this.#log = log;
    this.#settleMs = settleMs;
  }

  of(caller: Caller): DaemonSession {
    const known = this.#sessions.get(caller);
    if (known) return known;
    const session = new DaemonSession(this.#client, this.#log, this.#settleMs);
    this.#sessions.set(caller, session);
    caller.onEnd(() => session.end(CALLER_ENDS[caller.endedBy ?? "caller"]));
    return session;
  }
}

let made = 0;

/** Of the form that `cua-driver mcp` gives its clients: unique among the daemon's, and not used twice. */
function newSessionId(): string {
  made += 1;
  return `mcp-${process.pid}-${BigInt(Date.now()) * 1_000_000n + BigInt(made)}`;
}

function refused(error: unknown): SentCall {
  return { reply: Promise.reject(error), settled: Promise.resolve() };
}

function cancelled(tool: string): AgentEnvError {
  return new AgentEnvError("delivery_failed", `${tool} was cancelled before it was sent`, { applied: "no" });
}

/** Whether the promise resolves within so many milliseconds. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
