import type { z } from "zod";
import type { JsonObject } from "../protocol/tool.js";

/** Who calls an extension's method: there is no MCP session, only what the request says. */
export interface ExtensionContext {
  readonly role: string | undefined;
  /** Aborted when the client goes away or the server stops. */
  readonly signal: AbortSignal;
}

/** One method of an extension as a value: its request schema and its handler together. */
export interface ExtensionMethod {
  /** How the card's `methods` names it. */
  readonly name: string;
  /** The last part of its endpoint; left out by an extension whose one method has none. */
  readonly op?: string;
  readonly method: "GET" | "POST";
  readonly request: z.ZodObject;
  /** Where it is served, when that isn't the extension's usual endpoint. */
  readonly endpoint?: string;
  handle(params: never, context: ExtensionContext): unknown;
}

/** An extension on the card: with methods it is served, without it is a declaration alone. */
export interface ServedExtension {
  readonly uri: string;
  readonly description: string;
  readonly methods: readonly ExtensionMethod[];
  /** Its features; read whenever the card is made. */
  params?(): JsonObject;
}

/** Ties a method's handler to its request schema, so that the handler's params are typed. */
export function extensionMethod<R extends z.ZodObject>(spec: {
  name: string;
  op?: string;
  method: "GET" | "POST";
  request: R;
  endpoint?: string;
  handle(params: z.output<R>, context: ExtensionContext): unknown;
}): ExtensionMethod {
  return spec as unknown as ExtensionMethod;
}
