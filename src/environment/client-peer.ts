import type { JsonObject } from "../protocol/tool.js";

/** The MCP client that a call came from, and how the call speaks to it before its answer. */
export interface ClientPeer {
  /** What the client declared in `initialize`. */
  readonly capabilities: JsonObject;
  /** The JSON text of the request's `params`, as the client wrote it. */
  readonly paramsText: string;
  /** Sends a notification that belongs to the call. A client that went away is told nothing. */
  notify(method: string, params: JsonObject): void;
  /**
   * Asks the client and waits for its answer. Throws `unsupported` for what the client didn't declare, `delivery_failed`
   * when it answers an error or can't be asked, and `signal`'s reason.
   */
  ask(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  /** Ends the call's HTTP response while the call goes on; the client fetches the rest after `retryMs`. */
  detach(retryMs: number): void;
}
