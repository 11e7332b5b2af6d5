import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { CALL_BOUNDS, jsonProblem } from "../protocol/json-bounds.js";
import { elementsOf } from "../protocol/json-text.js";
import { type JsonParts, joined, RawError, RawJson } from "../protocol/raw-json.js";

/** JSON-RPC's and MCP's error codes that the HTTP side answers by itself. */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
/** Source: the MCP SDKs answer refusals that belong to no request with this code, and an unknown session with the next. */
export const REFUSED = -32000;
export const SESSION_NOT_FOUND = -32001;

/** One JSON-RPC error body that belongs to no request. */
export function errorBody(code: number, message: string, data?: object): string {
  return JSON.stringify({
    jsonrpc: "2.0",
    error: { code, message, ...(data === undefined ? {} : { data }) },
    id: null,
  });
}

export interface Incoming {
  messages: JSONRPCMessage[];
  /** The text of each message, as the client wrote it. */
  texts: string[];
  batch: boolean;
}

/** What is wrong with a body, as the JSON-RPC error it is answered with. */
export class BodyError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

const MAX_BATCH = 100;

/**
 * Reads a POST's body. Only what the protocol layer is sure to take comes out: it drops a message of another shape
 * without an answer, which would leave the client waiting.
 */
export function readMessages(body: Buffer): Incoming {
  const problem = jsonProblem(body, CALL_BOUNDS);
  if (problem !== undefined) throw new BodyError(PARSE_ERROR, `Parse error: the body can't be taken: ${problem}`);
  const text = body.toString("utf8");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new BodyError(PARSE_ERROR, "Parse error: the body is not JSON");
  }
  if (!Array.isArray(parsed)) return { messages: [message(parsed)], texts: [text], batch: false };
  if (parsed.length === 0 || parsed.length > MAX_BATCH) {
    throw new BodyError(INVALID_REQUEST, `Invalid Request: a batch holds 1 to ${MAX_BATCH} messages`);
  }
  const texts = elementsOf(text)?.map(({ start, end }) => text.slice(start, end)) ?? [];
  return { messages: parsed.map(message), texts, batch: true };
}

function message(value: unknown): JSONRPCMessage {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BodyError(INVALID_REQUEST, "Invalid Request: a message is a JSON object");
  }
  const { jsonrpc, id, method, params, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") throw new BodyError(INVALID_REQUEST, 'Invalid Request: jsonrpc is "2.0"');
  if (typeof method === "string") {
    const known: Record<string, unknown> = { jsonrpc, method };
    if (params !== undefined) known.params = params;
    if (id !== undefined) known.id = id;
    if (isPlain(id, params)) return known as JSONRPCMessage;
    const small = withSmallToken(known as unknown as JSONRPCMessage);
    if (id === undefined ? isJSONRPCNotification(small) : isJSONRPCRequest(small)) return known as JSONRPCMessage;
    throw new BodyError(
      INVALID_REQUEST,
      "Invalid Request: id is a string or an integer below 2^53, params is an object, _meta is well-formed",
    );
  }
  if (isId(id) && (isObject(result) || isObject(error))) {
    return (error === undefined ? { jsonrpc, id, result } : { jsonrpc, id, error }) as JSONRPCMessage;
  }
  throw new BodyError(INVALID_REQUEST, "Invalid Request: neither a request, a notification nor a response");
}

/** The message as the protocol layer takes it, which takes no progress token that is no safe integer: servers behind may. */
export function withSmallToken<M extends JSONRPCMessage>(message: M): M {
  const { params } = message as { params?: { _meta?: { progressToken?: unknown } } };
  const token = params?._meta?.progressToken;
  if (typeof token !== "number" || Number.isSafeInteger(token)) return message;
  return { ...message, params: { ...params, _meta: { ...params?._meta, progressToken: String(token) } } };
}

/** What needs no schema to be seen: an id of the right kind or none, and params without `_meta`. */
function isPlain(id: unknown, params: unknown): boolean {
  return (
    (id === undefined || isId(id)) && (params === undefined || (isObject(params) && !("_meta" in (params as object))))
  );
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isId(id: unknown): id is RequestId {
  return typeof id === "string" || Number.isSafeInteger(id);
}

export type MessageText = string | JsonParts;

export function textOf(message: MessageText): string {
  return typeof message === "string" ? message : joined(message);
}

/** A message as JSON text; a result or an error that is JSON text already goes in as it is. */
export function serialize(message: JSONRPCMessage): MessageText {
  const { result, id } = message as { result?: unknown; id: RequestId };
  // The keys in the order in which JSON.stringify writes the protocol layer's own answers.
  if (result instanceof RawError) return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${result.text}}`;
  if (result instanceof RawJson) {
    const tail = `,"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
    if (result.parts === undefined) return `{"result":${result.text}${tail}`;
    const [before, bytes, after] = result.parts;
    return [`{"result":${before}`, bytes, `${after}${tail}`];
  }
  return JSON.stringify(message);
}

/** One server-sent event. JSON text has no raw line break, unless another server's text was written over several lines. */
export function event(text: string): string {
  const data = /[\r\n]/.test(text) ? text.replaceAll(/\r\n|\r|\n/g, " ") : text;
  return `event: message\ndata: ${data}\n\n`;
}
