import type { z } from "zod";
import type { DataHandlers } from "../environment/collect.js";
import { describeIssues } from "../environment/schema.js";
import { messageOf } from "../errors.js";
import { DATA_OPERATIONS, type DataOperation } from "../protocol/card.js";
import { AddDataParams, GetDataParams, ResetDataParams } from "../protocol/data-plane.js";
import { DATA_BOUNDS, jsonProblem } from "../protocol/json-bounds.js";
import { parseLargeJson } from "./large-json.js";

type RpcId = string | number | null;

class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: object,
  ) {
    super(message);
  }
}

/**
 * Answers one JSON-RPC request of the data plane. Errors are JSON-RPC errors under HTTP 200; a notification is answered
 * with undefined.
 */
export async function callDataPlane(
  handlers: DataHandlers,
  body: Buffer | undefined,
  failed: (thrown: unknown) => void,
): Promise<object | undefined> {
  let id: RpcId = null;
  try {
    const request = readRequest(body);
    id = request.id ?? null;
    const result = await dispatch(handlers, request.method, request.params, failed);
    return request.id === undefined ? undefined : { jsonrpc: "2.0", id, result };
  } catch (thrown) {
    const error = thrown instanceof RpcError ? thrown : new RpcError(-32603, messageOf(thrown));
    if (!(thrown instanceof RpcError)) failed(thrown);
    const data = error.data === undefined ? {} : { data: error.data };
    return { jsonrpc: "2.0", id, error: { code: error.code, message: error.message, ...data } };
  }
}

function readRequest(body: Buffer | undefined): { id: RpcId | undefined; method: string; params: unknown } {
  const problem = body === undefined ? undefined : jsonProblem(body, DATA_BOUNDS);
  if (problem !== undefined) throw new RpcError(-32700, "Parse error", { detail: problem });
  let request: unknown;
  try {
    request = parseLargeJson(body ?? Buffer.alloc(0));
  } catch {
    throw new RpcError(-32700, "Parse error");
  }
  if (typeof request !== "object" || request === null || Array.isArray(request)) {
    throw new RpcError(-32600, "Invalid Request", { detail: "a request is one JSON object" });
  }
  const { jsonrpc, id, method, params } = request as Record<string, unknown>;
  const idIsFine = id === undefined || id === null || typeof id === "string" || typeof id === "number";
  if (jsonrpc !== "2.0" || typeof method !== "string" || !idIsFine) {
    throw new RpcError(-32600, "Invalid Request", {
      detail: 'jsonrpc is "2.0", method a string, id a string or a number',
    });
  }
  return { id: id as RpcId | undefined, method, params: params ?? {} };
}

async function dispatch(
  handlers: DataHandlers,
  method: string,
  params: unknown,
  failed: (thrown: unknown) => void,
): Promise<object> {
  if (!(DATA_OPERATIONS as readonly string[]).includes(method) || handlers[method as DataOperation] === undefined) {
    throw new RpcError(-32601, "Method not found", { detail: `${method} is not served here` });
  }
  switch (method as DataOperation) {
    case "data/reset":
      read(ResetDataParams, params);
      await run("reset_failed", failed, () => handlers["data/reset"]?.());
      return {};
    case "data/add": {
      const { parts } = read(AddDataParams, params);
      await run("add_failed", failed, () => handlers["data/add"]?.(parts));
      return {};
    }
    case "data/get": {
      const wanted = read(GetDataParams, params);
      return { parts: (await run("get_failed", failed, () => handlers["data/get"]?.(wanted))) ?? [] };
    }
  }
}

function read<S extends z.ZodType>(schema: S, params: unknown): z.output<S> {
  const parsed = schema.safeParse(params);
  if (!parsed.success) throw new RpcError(-32602, "Invalid params", { detail: describeIssues(parsed.error) });
  return parsed.data;
}

async function run<T>(code: string, failed: (thrown: unknown) => void, operation: () => T | Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (thrown) {
    failed(thrown);
    throw new RpcError(-32000, messageOf(thrown), { code });
  }
}
