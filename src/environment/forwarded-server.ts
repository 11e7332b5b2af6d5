import type { RawError, RawJson } from "../protocol/raw-json.js";
import type { JsonObject } from "../protocol/tool.js";
import type { Caller } from "./caller.js";
import type { ClientPeer } from "./client-peer.js";

/** What a server lists. */
export type ListKind = "tools" | "resources" | "resourceTemplates" | "prompts" | "skills";

/** One entry of a list, as its server wrote it. */
export interface ForwardedItem {
  /** Its name or URI. */
  readonly key: string;
  readonly text: string;
}

/** A whole list of a server, all pages of it. The same object for the same list, so that what is made from it can be kept. */
export interface ForwardedList {
  readonly items: readonly ForwardedItem[];
  /** The members that the list's result has beside the list, as text between commas; empty for none. */
  readonly rest: string;
  /** The whole result, where the list has one page: served as it is where nothing is added or left out. */
  readonly whole: string | undefined;
}

/** What a server serves to a client that can do everything. */
export interface ForwardedCatalog {
  readonly capabilities: JsonObject;
  readonly instructions: string | undefined;
  readonly lists: Readonly<Partial<Record<ListKind, ForwardedList>>>;
}

/** Who a forwarded request comes from. */
export interface ForwardedCall {
  readonly caller: Caller;
  /** The caller's role, undefined for none. */
  readonly role?: string | undefined;
  readonly signal: AbortSignal;
  /** The client, where there is one. */
  readonly client?: ClientPeer | undefined;
}

/** What a server let know: a list of it as it is now, or, where all callers share it, a notification for all of them. */
export type ForwardedChange =
  | {
      readonly kind: "tools" | "resources" | "prompts";
      readonly list: ForwardedList;
      /** Whether all callers see this list, so that what it doesn't have is gone; without it, one caller does. */
      readonly forAll?: boolean;
    }
  | { readonly kind: "said"; readonly method: string; readonly text: string };

/** Another MCP server, all of which an environment forwards. `forwardMcp` makes one. */
export interface ForwardedServer {
  /** How errors name it. */
  readonly name: string;
  /** Connects and reads what the server serves; `changed` is called with what it lets know later. Throws a SetupError. */
  open(changed: (change: ForwardedChange) => void): Promise<ForwardedCatalog>;
  /** A list as the server shows it to this caller, or the error that it answers in its place. */
  list(kind: ListKind, call: ForwardedCall): Promise<ForwardedList | RawError>;
  /**
   * Sends a request with its params as they are and answers the server's result, or its error as a RawError. Throws an
   * AgentEnvError where the server gave neither, with `applied: no` when it never got the request.
   */
  request(method: string, params: string, call: ForwardedCall): Promise<RawJson>;
  /** Passes a client's notification on, to a server that its caller uses already. */
  notify(message: string, caller: Caller): void;
  /** Ends every session and process. Idempotent. */
  close(): Promise<void>;
}
