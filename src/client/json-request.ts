import { errors, request } from "undici";
import { messageOf } from "../errors.js";
import { RemoteError, type RemoteErrorFields } from "./remote-error.js";

/** How long a call may take, and what lets it go. */
export interface RequestOptions {
  /** After this many milliseconds the call is given up. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** An HTTP answer. */
export interface JsonAnswer {
  readonly status: number;
  /** The body as JSON, or as text where it is none. */
  readonly body: unknown;
}

/**
 * One request that answers JSON. Throws a RemoteError where nothing was reached (`applied: no`) or the answer was lost
 * (`applied: unknown` for a POST), `timeout` at the deadline, and the signal's reason.
 */
export async function requestJson(
  url: URL,
  method: "GET" | "POST",
  headers: Readonly<Record<string, string>>,
  body: unknown,
  { timeoutMs = 30_000, signal }: RequestOptions,
): Promise<JsonAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await request(url, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
    return { status: response.statusCode, body: parse(await response.body.text()) };
  } catch (thrown) {
    signal?.throwIfAborted();
    const applied = method === "GET" || neverConnected(thrown) ? "no" : "unknown";
    const late = deadline.aborted || thrown instanceof errors.HeadersTimeoutError;
    const fields = late
      ? { code: "timeout", message: `${url.origin} didn't answer within ${timeoutMs} ms`, retryable: false, applied }
      : {
          code: applied === "no" ? "device_unavailable" : "delivery_failed",
          message: `${url.origin} can't be used: ${messageOf(thrown) || String((thrown as NodeJS.ErrnoException).code)}`,
          retryable: applied === "no",
          applied,
        };
    throw new RemoteError(fields as RemoteErrorFields, undefined, { cause: thrown });
  }
}

/** Whether nothing was sent, since there was no connection to send on. */
function neverConnected(thrown: unknown): boolean {
  const { syscall } = thrown as NodeJS.ErrnoException;
  return thrown instanceof errors.ConnectTimeoutError || syscall === "connect" || syscall === "getaddrinfo";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The error that an answer says, in the protocol's shape or any other. */
export function errorOf({ status, body }: JsonAnswer): RemoteError {
  const error = (body as { error?: Partial<RemoteErrorFields> } | null)?.error ?? {};
  return new RemoteError(
    {
      code: typeof error.code === "string" ? error.code : "internal",
      message: typeof error.message === "string" ? error.message : `HTTP ${status}`,
      retryable: error.retryable === true,
      applied: error.applied === "no" || error.applied === "yes" ? error.applied : "unknown",
      hint: error.hint,
    },
    status,
  );
}
