import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import type { Params } from "./session.js";

/** A JSON-RPC error. Its message goes out as it is, without the SDK's prefix. */
export function rpcError(code: number, message: string, data?: object): Error {
  return Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) });
}

/** An error of the request itself. */
export function invalid(message: string, data?: object): Error {
  return rpcError(ErrorCode.InvalidParams, message, data);
}

/** A list that fits one page has no cursor, so any that a client sends is not ours. */
export function refuseCursor(params: Params): void {
  if (params.cursor !== undefined) throw invalid("params.cursor: this list has one page");
}
