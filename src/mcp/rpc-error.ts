import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { AgentEnvError } from "../errors.js";

/** A JSON-RPC error. Its message goes out as it is, without the SDK's prefix. */
export function rpcError(code: number, message: string, data?: object): Error {
  return Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) });
}

/** What a handler threw, as the error that its request is answered with. */
export function rpcErrorOf(thrown: unknown): unknown {
  if (!(thrown instanceof AgentEnvError)) return thrown;
  const code = thrown.code === "invalid_argument" ? ErrorCode.InvalidParams : ErrorCode.InvalidRequest;
  return rpcError(code, thrown.message, thrown.fields());
}

/** An error of the request itself. */
export function invalid(message: string, data?: object): Error {
  return rpcError(ErrorCode.InvalidParams, message, data);
}

/** A list that fits one page has no cursor, so any that a client sends is not ours. */
export const ONE_PAGE = "params.cursor: this list has one page";
