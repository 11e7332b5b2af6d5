import type { z } from "zod";
import type { DataOperation } from "../protocol/card.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { ToolContext } from "./context.js";
import type { HandlerResult, ToolSpec } from "./define-tool.js";
import { declare, type ExtensionOptions, type ResourceOptions, withEntry } from "./metadata.js";

/** `@tool`'s options; the name is the method's unless it says another. */
export type ToolOptions<I extends z.ZodObject, O extends z.ZodType> = Omit<ToolSpec<I, O>, "name"> & { name?: string };

type Method<This, Args extends unknown[], R> = (this: This, ...args: Args) => R;

/** Serves a method as an MCP tool. Its arguments are validated against `input` before it is called. */
export function tool<I extends z.ZodObject, O extends z.ZodType = z.ZodType>(options: ToolOptions<I, O>) {
  return <This>(
    _method: Method<This, [args: z.output<I>, context: ToolContext], HandlerResult>,
    context: ClassMethodDecoratorContext<This>,
  ): void => {
    const method = methodName(context, "@tool");
    declare(context.metadata, (now) => ({
      tools: withEntry(now.tools, method, options as Omit<ToolSpec<z.ZodObject>, "name"> & { name?: string }),
    }));
  };
}

/**
 * Serves a method of an extension at `/agentenv/ext/<name>/<op>`. GET takes its params from the query string, POST from a
 * JSON body. What it returns is the JSON answer; an AgentEnvError that it throws is the error answer.
 */
export function extension(uri: string, options: ExtensionOptions = {}) {
  return <This>(_method: Method<This, [params: never], unknown>, context: ClassMethodDecoratorContext<This>): void => {
    const method = methodName(context, "@extension");
    declare(context.metadata, (now) => ({ extensions: withEntry(now.extensions, method, { ...options, uri }) }));
  };
}

/**
 * Serves a method as an MCP resource: `uri` is a fixed one. The method returns the text, or bytes as a Buffer.
 */
export function resource(uri: string, options: ResourceOptions = {}) {
  return <This>(_method: Method<This, [], unknown>, context: ClassMethodDecoratorContext<This>): void => {
    const method = methodName(context, "@resource");
    declare(context.metadata, (now) => ({ resources: withEntry(now.resources, method, { ...options, uri }) }));
  };
}

/** The method whose text `initialize` carries as the server's instructions; read once, when the environment is built. */
export function serverInstructions<This>(
  _method: Method<This, [], string | undefined>,
  context: ClassMethodDecoratorContext<This>,
): void {
  const method = methodName(context, "@serverInstructions");
  declare(context.metadata, () => ({ instructions: method }));
}

/** Serves `data/reset`. */
export function resetData<This>(
  _method: Method<This, [], void | Promise<void>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  operation("data/reset", context);
}

/** Serves `data/add`. */
export function addData<This>(
  _method: Method<This, [parts: Part[]], void | Promise<void>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  operation("data/add", context);
}

/** Serves `data/get`. */
export function getData<This>(
  _method: Method<This, [params: GetDataParams], Part[] | Promise<Part[]>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  operation("data/get", context);
}

function operation(name: DataOperation, context: Declaring & { metadata: DecoratorMetadataObject }): void {
  const method = methodName(context, `the decorator of ${name}`);
  declare(context.metadata, (now) => ({ operations: withEntry(now.operations, name, method) }));
}

type Declaring = Pick<ClassMethodDecoratorContext, "static" | "private" | "name">;

function methodName(context: Declaring, decorator: string): string {
  if (context.static || context.private || typeof context.name !== "string") {
    throw new TypeError(`${decorator} decorates public instance methods that have a name`);
  }
  return context.name;
}
