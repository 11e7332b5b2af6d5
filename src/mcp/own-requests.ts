import {
  ErrorCode,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { rpcErrorOf } from "./rpc-error.js";
import type { RequestSource } from "./session-transport.js";

/** One MCP request, as a handler sees it. */
export interface McpRequest {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly id: RequestId;
  readonly signal: AbortSignal;
  readonly source: RequestSource;
}

export type RequestHandler = (request: McpRequest) => object | Promise<object>;

/**
 * The requests of one session that we answer ourselves. They don't go through the SDK's protocol layer, which parses each
 * message with half a dozen schemas (a fifth of what a short call costs), strips keys of content that it doesn't know and
 * refuses kinds of content that it doesn't know. What it knows better stays its own: initialize, ping, a method that nobody
 * serves.
 */
export class OwnRequests {
  readonly #handlers = new Map<string, RequestHandler>();
  readonly #running = new Map<RequestId, AbortController>();
  #closed = false;

  /** `unforeseen` gets what a handler threw that says nothing about the request: a fault of the environment's, or of ours. */
  constructor(
    private readonly send: (answer: JSONRPCMessage) => void,
    private readonly unforeseen: (thrown: unknown, method: string) => void,
  ) {}

  serve(method: string, handler: RequestHandler): void {
    this.#handlers.set(method, handler);
  }

  /** Answers a request; false where its method isn't served here. */
  take({ method, params = {}, id }: JSONRPCRequest, source: RequestSource): boolean {
    const handler = this.#handlers.get(method);
    if (handler === undefined) return false;
    const controller = new AbortController();
    this.#running.set(id, controller);
    if (this.#closed) controller.abort();
    this.#answer(handler, { method, params, id, signal: controller.signal, source });
    return true;
  }

  /** A request that was cancelled is told so, and isn't answered any more. */
  cancel(id: RequestId, reason: string | undefined): void {
    this.#running.get(id)?.abort(reason);
  }

  /** The session is over: whatever runs is told so. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const controller of this.#running.values()) controller.abort();
  }

  /** Not async, since each promise that is waited for between an answer and its being sent is time that a client waits. */
  #answer(handler: RequestHandler, request: McpRequest): void {
    const { id, method, signal } = request;
    const answer = (message: JSONRPCMessage): void => {
      if (this.#running.get(id)?.signal === signal) this.#running.delete(id);
      if (!signal.aborted) this.send(message);
    };
    const fail = (thrown: unknown): void => {
      const error = rpcErrorOf(thrown);
      if (!isOwnError(error) && !signal.aborted) this.unforeseen(thrown, method);
      answer({ jsonrpc: "2.0", id, error: errorOf(error) } as JSONRPCMessage);
    };
    let result: object | Promise<object>;
    try {
      result = handler(request);
    } catch (thrown) {
      fail(thrown);
      return;
    }
    // A result that is no JSON, after all, is an error too.
    Promise.resolve(result)
      .then((value) => answer({ jsonrpc: "2.0", id, result: value } as JSONRPCMessage))
      .catch(fail);
  }
}

/** Whether it was thrown to be answered, as errors with a JSON-RPC code are. */
function isOwnError(thrown: unknown): boolean {
  return Number.isSafeInteger((thrown as { code?: unknown } | null | undefined)?.code);
}

/** The JSON-RPC error that a thrown one means, as the SDK's protocol layer answers it; without data that is no JSON. */
function errorOf(thrown: unknown): object {
  const { code, message, data } = (thrown ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  return {
    code: Number.isSafeInteger(code) ? code : ErrorCode.InternalError,
    message: typeof message === "string" ? message : "Internal error",
    ...(data === undefined || !isJson(data) ? {} : { data }),
  };
}

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}
