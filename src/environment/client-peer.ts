import type { JsonObject } from "../protocol/tool.js";

/** Names a request of a client. */
export type RequestKey = string | number;

/** A JSON-RPC answer, its JSON text as it was written. */
export interface TextAnswer {
  readonly kind: "result" | "error";
  readonly text: string;
}

/** The MCP session of a client, as long as it lives. */
export interface ClientSession {
  /** What the client declared in `initialize`. */
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  /** Whether the client listens to what belongs to no request of it. */
  readonly listening: boolean;
  /** Sends a message's JSON text, with the request that it belongs to. False for a client that can't be told now. */
  say(message: string, related?: RequestKey): boolean;
  /**
   * Asks the client; `params` is JSON text. Throws `delivery_failed` when it can't be asked or its session ends, and the
   * signal's reason.
   */
  ask(method: string, params: string, related: RequestKey | undefined, signal: AbortSignal): Promise<TextAnswer>;
}

/** The MCP client that a call came from, and how the call speaks to it before its answer. */
export interface ClientPeer {
  readonly session: ClientSession;
  readonly requestId: RequestKey;
  /** The JSON text of the request's `params`, as the client wrote it. */
  readonly paramsText: string;
  /** Sends a notification that belongs to the call. A client that went away is told nothing. */
  notify(method: string, params: JsonObject): void;
  /** Asks the client. Throws `delivery_failed` when it answers an error or can't be asked, and the signal's reason. */
  ask(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  /** Ends the call's HTTP response while the call goes on; the client fetches the rest after `retryMs`. */
  detach(retryMs: number): void;
}
