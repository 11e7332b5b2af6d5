import type { z } from "zod";
import type { DataOperation } from "../protocol/card.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { ToolContext } from "./context.js";
import type { HandlerResult, ToolSpec } from "./define-tool.js";
import type { ExtensionContext } from "./extension.js";
import { declare, type ExtensionOptions, type PromptOptions, type ResourceOptions, withEntry } from "./metadata.js";
import type { PromptAnswer } from "./prompt.js";
import type { ResourceContent, ResourceContext } from "./resource.js";
import type { SkillAnswer } from "./skill.js";

/** `@tool`'s options; the name is the method's unless it says another. */
export type ToolOptions<I extends z.ZodObject, O extends z.ZodType> = Omit<ToolSpec<I, O>, "name"> & { name?: string };

/** What a resource's method may return. */
export type ResourceAnswer = string | Uint8Array | Partial<ResourceContent> | Partial<ResourceContent>[];

/** A method that a decorator takes, by what it is called with and what it answers. */
export type DecoratedMethod<This, Args extends unknown[], R> = (this: This, ...args: Args) => R;

/** Serves a method as an MCP tool. Its arguments are validated against `input` before it is called. */
export function tool<I extends z.ZodObject, O extends z.ZodType = z.ZodType>(options: ToolOptions<I, O>) {
  return <This>(
    _method: DecoratedMethod<This, [args: z.output<I>, context: ToolContext], HandlerResult>,
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
 * JSON body. It is called with the params and an ExtensionContext. What it returns is the JSON answer; an AgentEnvError that
 * it throws is the error answer.
 */
export function extension<R extends z.ZodObject = z.ZodObject>(
  uri: string,
  options: ExtensionOptions & { request?: R } = {},
) {
  return <This>(
    _method: DecoratedMethod<This, [params: z.output<R>, context: ExtensionContext], unknown>,
    context: ClassMethodDecoratorContext<This>,
  ): void => {
    const method = methodName(context, "@extension");
    declare(context.metadata, (now) => ({ extensions: withEntry(now.extensions, method, { ...options, uri }) }));
  };
}

/**
 * Serves a method as an MCP resource. A fixed `uri` is one resource, whose method is called with a ResourceContext; a
 * template such as `orders://{order_id}` is many, whose method is called with the parts of the URI and the context. The
 * method returns text, bytes, or a whole `contents` entry or several.
 */
export function resource(uri: string, options: ResourceOptions = {}) {
  return <This>(
    // biome-ignore lint/suspicious/noExplicitAny: a fixed resource's method and a template's take different arguments
    _method: DecoratedMethod<This, any, ResourceAnswer | Promise<ResourceAnswer>>,
    context: ClassMethodDecoratorContext<This>,
  ): void => {
    const method = methodName(context, "@resource");
    declare(context.metadata, (now) => ({ resources: withEntry(now.resources, method, { ...options, uri }) }));
  };
}

/** Serves a method as an MCP prompt. It is called with the arguments and a ResourceContext. */
export function prompt<A extends z.ZodObject = z.ZodObject>(options: PromptOptions & { arguments?: A } = {}) {
  return <This>(
    _method: DecoratedMethod<This, [args: z.output<A>, context: ResourceContext], PromptAnswer | Promise<PromptAnswer>>,
    context: ClassMethodDecoratorContext<This>,
  ): void => {
    const method = methodName(context, "@prompt");
    declare(context.metadata, (now) => ({ prompts: withEntry(now.prompts, method, options) }));
  };
}

/**
 * Serves the skill that a method returns: its name, its SKILL.md, and its other files by their path. Read once, when the
 * environment is built.
 */
export function agentSkill<This>(
  _method: DecoratedMethod<This, [], SkillAnswer | Promise<SkillAnswer>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  const method = methodName(context, "@agentSkill");
  declare(context.metadata, () => ({ skill: method }));
}

/** The method whose text `initialize` carries as the server's instructions; read once, when the environment is built. */
export function serverInstructions<This>(
  _method: DecoratedMethod<This, [], string | undefined>,
  context: ClassMethodDecoratorContext<This>,
): void {
  const method = methodName(context, "@serverInstructions");
  declare(context.metadata, () => ({ instructions: method }));
}

/** Serves `data/reset`. */
export function resetData<This>(
  _method: DecoratedMethod<This, [], void | Promise<void>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  operation("data/reset", context);
}

/** Serves `data/add`. */
export function addData<This>(
  _method: DecoratedMethod<This, [parts: Part[]], void | Promise<void>>,
  context: ClassMethodDecoratorContext<This>,
): void {
  operation("data/add", context);
}

/** Serves `data/get`. */
export function getData<This>(
  _method: DecoratedMethod<This, [params: GetDataParams], Part[] | Promise<Part[]>>,
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
