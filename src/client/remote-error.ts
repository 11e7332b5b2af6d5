import type { Applied } from "../errors.js";

/** What another environment answered in the place of a result; its codes are its own, so any text may be one. */
export interface RemoteErrorFields {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly applied: Applied;
  readonly hint?: string | undefined;
}

/**
 * An environment refused or failed a call, or none could be reached. `retryable` with `applied: "no"` may be sent again by a
 * program; a call whose answer was lost is `unknown`.
 */
export class RemoteError extends Error {
  override readonly name = "RemoteError";
  readonly code: string;
  readonly retryable: boolean;
  readonly applied: Applied;
  readonly hint: string | undefined;

  constructor(
    fields: RemoteErrorFields,
    /** The HTTP status, undefined where there was no answer. */
    readonly status: number | undefined,
    options: { cause?: unknown; data?: unknown } = {},
  ) {
    super(fields.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = fields.code;
    this.retryable = fields.retryable;
    this.applied = fields.applied;
    this.hint = fields.hint;
    this.data = options.data;
  }

  /** The `data` of a JSON-RPC error. */
  readonly data: unknown;
}
