import { z } from "zod";
import type { ComputerLog } from "../../src/computer/log.js";
import { AgentEnvError, messageOf } from "../../src/errors.js";
import { RawJson } from "../../src/protocol/raw-json.js";
import type { JsonObject } from "../../src/protocol/tool.js";
import { ControlConnection } from "./control-connection.js";
import { Exchange } from "./exchange.js";
import { Wire } from "./wire.js";

/** A longer answer is refused. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** How long the daemon may take, in milliseconds. */
export const DEADLINES = {
  /** A tool's call; below the 120 s of a client's transport. */
  call: 110_000,
  /** A call that captures or reads the screen. */
  capture: 15_000,
  /** `metadata`, which is answered whatever else runs. */
  metadata: 2_000,
  /** `list`, `sessions_list`, and the start of a session. */
  control: 4_000,
} as const;
export type Deadlines = { readonly [name in keyof typeof DEADLINES]: number };

const Metadata = z.looseObject({
  driver_version: z.string(),
  contract_version: z.string(),
  mcp_protocol_version: z.string(),
  pid: z.int(),
});
export type DaemonMetadata = z.infer<typeof Metadata>;

const SessionsList = z.looseObject({
  sessions: z.array(z.looseObject({ session: z.string().nullable(), implicit: z.boolean(), state: z.string() })),
});

export interface DaemonClientOptions {
  readonly socketPath: string;
  readonly log: ComputerLog;
  readonly deadlines?: Partial<Deadlines>;
  /** Default: 64 MiB. */
  readonly maxReplyBytes?: number;
  /** Called when a call's deadline passed: the daemon may hang. */
  readonly onDeadline?: (what: string) => void;
  /** Called when a call can't be sent: the daemon is gone, or its socket is. */
  readonly onUnreachable?: (what: string) => void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineMs?: number;
  /** True for a tool that changes nothing. */
  readonly reads: boolean;
}

/**
 * The client of the daemon's Unix socket: a line of JSON asks, a line of JSON answers, each call on a connection of its own,
 * so that no answer can reach another call. One connection is opened ahead; where it was closed before it was used,
 * another takes its place.
 */
export class DaemonClient {
  readonly deadlines: Deadlines;
  readonly #options: DaemonClientOptions;
  #spare: Wire | undefined;
  #opening: NodeJS.Immediate | undefined;
  #closed = false;
  #pid: number | undefined;

  constructor(options: DaemonClientOptions) {
    this.#options = options;
    this.deadlines = { ...DEADLINES, ...options.deadlines };
  }

  /** The daemon's pid as its last `metadata` said it. */
  get knownPid(): number | undefined {
    return this.#pid;
  }

  /**
   * Sends one call of a tool, in the transport session named. `reply` is its answer; `settled` outlasts it where the caller
   * cancelled an input. The arguments are sent as they are, JSON text character by character.
   */
  call(tool: string, args: JsonObject | RawJson, options: CallOptions, sessionId?: string): Exchange {
    const session = sessionId === undefined ? "" : `,"session_id":${JSON.stringify(sessionId)}`;
    // Marked as `cua-driver mcp` marks its clients' calls, so that the daemon sees both as the same kind.
    const request = `{"method":"call","name":${JSON.stringify(tool)},"args":${argumentsText(args)}${session},"observation_origin":"mcp_proxy"}`;
    return this.#exchange(request, tool, options.reads, options.deadlineMs ?? this.deadlines.call, options.signal);
  }

  /** Rejects with `internal` where the daemon answers something else than its metadata. */
  async metadata(options: { signal?: AbortSignal; deadlineMs?: number } = {}): Promise<DaemonMetadata> {
    const deadlineMs = options.deadlineMs ?? this.deadlines.metadata;
    const metadata = await this.#ask("metadata", Metadata, deadlineMs, options.signal);
    this.#pid = metadata.pid;
    return metadata;
  }

  /** The daemon's own list of its tools, in its snake_case. */
  list(signal?: AbortSignal): Promise<JsonObject> {
    return this.#ask("list", z.looseObject({ tools: z.array(z.looseObject({})) }), this.deadlines.control, signal);
  }

  async sessionsList(signal?: AbortSignal): Promise<z.infer<typeof SessionsList>["sessions"]> {
    return (await this.#ask("sessions_list", SessionsList, this.deadlines.control, signal)).sessions;
  }

  /**
   * Starts a transport session: resolves with its control connection once the daemon has taken it. The session lives as
   * long as that connection. Rejects with `device_unavailable` where the daemon doesn't take it.
   */
  async beginSession(sessionId: string): Promise<ControlConnection> {
    const wire = new Wire(this.#options.socketPath);
    const control = new ControlConnection(wire, sessionId, this.deadlines.control, () => this.#missed("session_begin"));
    await control.ready;
    return control;
  }

  /** Ends whatever sessions the transport session still has. For one whose control connection is gone. */
  async endSession(sessionId: string): Promise<void> {
    const request = JSON.stringify({ method: "session_end", session_id: sessionId });
    await this.#exchange(request, "session_end", false, this.deadlines.control, undefined).reply;
  }

  /** Closes the connection that was opened ahead; calls that run are theirs who sent them. Later calls are refused. */
  close(): void {
    this.#closed = true;
    this.#spare?.destroy();
    this.#spare = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #ask<Schema extends z.ZodType>(
    method: string,
    schema: Schema,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<z.infer<Schema>> {
    const reply = await this.#exchange(JSON.stringify({ method }), method, true, deadlineMs, signal).reply;
    if (!reply.ok) {
      throw new AgentEnvError("internal", `cua-driver refused ${method}: ${reply.error}`, { applied: "no" });
    }
    const value = schema.safeParse(reply.value);
    if (value.success) return value.data;
    throw new AgentEnvError(
      "internal",
      `cua-driver answered ${method} with something else: ${messageOf(value.error)}`,
      {
        applied: "no",
        cause: value.error,
      },
    );
  }

  #exchange(
    request: string,
    what: string,
    reads: boolean,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Exchange {
    if (this.#closed) throw new AgentEnvError("device_unavailable", `the computer is stopping: ${what} was not sent`);
    return new Exchange(this.#takeWire(), {
      what,
      line: `${request}\n`,
      reads,
      deadlineMs,
      signal,
      maxReplyBytes: this.#options.maxReplyBytes ?? MAX_REPLY_BYTES,
      onDeadline: () => this.#missed(what),
      onOver: () => this.#openSpare(),
      onUnreachable: () => this.#options.onUnreachable?.(what),
    });
  }

  /** The connection opened ahead, if it stands; one that is still being made might fail, which is no call's business. */
  #takeWire(): Wire {
    const spare = this.#spare;
    if (spare?.state !== "open") return new Wire(this.#options.socketPath);
    this.#spare = undefined;
    return spare;
  }

  /**
   * Opens a connection ahead once an answer is on its way to its caller. While a call is with the daemon, a connection that
   * is made beside it costs that call a tenth of its time.
   */
  #openSpare(): void {
    if (this.#opening !== undefined || this.#closed) return;
    if (this.#spare !== undefined && this.#spare.state !== "closed") return;
    this.#opening = setImmediate(() => {
      this.#opening = undefined;
      if (!this.#closed) this.#spare = new Wire(this.#options.socketPath, true);
    });
  }

  #missed(what: string): void {
    this.#options.log.warn({ call: what }, "cua-driver missed a deadline");
    this.#options.onDeadline?.(what);
  }
}

/** One line: a line break in JSON text lies between its tokens, where a space does as well. */
function argumentsText(args: JsonObject | RawJson): string {
  if (!(args instanceof RawJson)) return JSON.stringify(args);
  return /[\r\n]/.test(args.text) ? args.text.replaceAll(/[\r\n]+/g, " ") : args.text;
}
