/**
 * Every way a call can be refused or fail, in one table. A code says three things that a caller acts on without reading
 * the message: the HTTP status, whether the same call may be sent again by a program (`retryable`), and whether its
 * effect happened (`applied`).
 */

/** Whether a call's effect happened: `unknown` when it may have been delivered before something failed. */
export type Applied = "yes" | "no" | "unknown";

interface ErrorRow {
  readonly status: number;
  readonly retryable: boolean;
  readonly applied: Applied;
}

/** Codes, statuses, `retryable` and `applied` are those of the AgentEnv protocol 1.0. */
export const ERRORS = {
  invalid_argument: { status: 400, retryable: false, applied: "no" },
  invalid_params: { status: 400, retryable: false, applied: "no" },
  out_of_bounds: { status: 400, retryable: false, applied: "no" },
  stale_frame: { status: 409, retryable: true, applied: "no" },
  input_busy: { status: 409, retryable: true, applied: "no" },
  permission_denied: { status: 403, retryable: false, applied: "no" },
  unsupported: { status: 501, retryable: false, applied: "no" },
  background_unavailable: { status: 501, retryable: false, applied: "no" },
  target_unavailable: { status: 404, retryable: false, applied: "no" },
  device_unavailable: { status: 503, retryable: true, applied: "no" },
  limit_exceeded: { status: 429, retryable: true, applied: "no" },
  timeout: { status: 504, retryable: false, applied: "unknown" },
  delivery_failed: { status: 502, retryable: false, applied: "unknown" },
  internal: { status: 500, retryable: false, applied: "unknown" },
  extension_failed: { status: 500, retryable: false, applied: "unknown" },
} as const satisfies Record<string, ErrorRow>;

/** A code of the table. */
export type ErrorCode = keyof typeof ERRORS;

/** What an error looks like on the wire: an extension's `error`, a failed tool's `structuredContent`. */
export interface ErrorFields {
  code: string;
  message: string;
  retryable: boolean;
  applied: Applied;
  hint?: string;
}

/** What an AgentEnvError says beside its code and message. */
export interface ErrorOptions {
  /** What the caller can do about it. */
  hint?: string;
  cause?: unknown;
  /** Overrides the table's `applied`, as for a read that timed out (`no`) or an input that was sent in part (`unknown`). */
  applied?: Applied;
  /** Overrides the table's status, as for a body that is too large (413). */
  status?: number;
  /** False for what will be refused again however often it is sent. */
  retryable?: false;
}

/**
 * Thrown by a tool or an extension to answer its caller with a code. Anything else that is thrown is a fault of ours and
 * is answered as `internal` or `extension_failed`, with `applied: unknown`.
 */
export class AgentEnvError extends Error {
  override readonly name = "AgentEnvError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;
  readonly applied: Applied;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(bounded(message), options.cause === undefined ? undefined : { cause: options.cause });
    const row: ErrorRow = ERRORS[code];
    this.code = code;
    this.status = options.status ?? row.status;
    this.applied = options.applied ?? row.applied;
    // What may have happened is never offered for an automatic second try.
    this.retryable = row.retryable && this.applied === "no" && options.retryable !== false;
    this.hint = options.hint;
  }

  fields(): ErrorFields {
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      applied: this.applied,
      ...(this.hint === undefined ? {} : { hint: this.hint }),
    };
  }

  /** The same error with another `applied`, for a call of several steps whose earlier steps were delivered. */
  withApplied(applied: Applied): AgentEnvError {
    return new AgentEnvError(this.code, this.message, {
      ...(this.hint === undefined ? {} : { hint: this.hint }),
      cause: this.cause ?? this,
      applied,
      status: this.status,
    });
  }
}

/** A message that quotes its input doesn't grow with it. */
const MAX_MESSAGE = 2_000;

function bounded(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE)}… (${message.length} characters)`;
}

/**
 * Something a person set up wrong: an env.toml key, a taken port, a missing program. The command line prints the message
 * and the hint, without a stack trace, and exits with 1.
 */
export class SetupError extends Error {
  override readonly name = "SetupError";
  readonly hint: string | undefined;

  constructor(message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.hint = options.hint;
  }
}

/** The text of anything that was thrown, for a message that quotes it. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
