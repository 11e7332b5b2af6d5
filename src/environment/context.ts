import type { JsonObject } from "../protocol/tool.js";
import type { Caller } from "./caller.js";

/** What is known about one tool call; a tool method's last parameter. */
export interface ToolContext {
  readonly caller: Caller;
  /** The caller's role, undefined for none. */
  readonly role: string | undefined;
  readonly tool: string;
  /** The arguments as they arrived, before validation. */
  readonly arguments: JsonObject;
  readonly callId: string;
  /** Aborted when the client cancels the call or its session closes. */
  readonly signal: AbortSignal;
  /** Reports progress to a client that asked for it; does nothing for one that didn't. */
  progress(progress: number, total?: number, message?: string): void;
}
