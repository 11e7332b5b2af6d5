import type { z } from "zod";
import type { DataOperation } from "../protocol/card.js";
import type { JsonObject } from "../protocol/tool.js";
import type { ToolSpec } from "./define-tool.js";
import type { Completer, ResourceContext, ResourceDefinition } from "./resource.js";

// Node 22 and 24 have no Symbol.metadata; a decorator's context.metadata is only made where it exists when the class is
// evaluated. This module is the one that every decorator imports.
(Symbol as { metadata?: symbol }).metadata ??= Symbol.for("Symbol.metadata");

/** What the decorators of a class said, by method name. */
export interface ClassMetadata {
  readonly tools: ReadonlyMap<string, Omit<ToolSpec<z.ZodObject>, "name"> & { name?: string }>;
  readonly extensions: ReadonlyMap<string, ExtensionOptions & { uri: string }>;
  readonly operations: ReadonlyMap<DataOperation, string>;
  readonly resources: ReadonlyMap<string, ResourceOptions & { uri: string }>;
  readonly prompts: ReadonlyMap<string, PromptOptions>;
  readonly instructions: string | undefined;
  readonly skill: string | undefined;
}

/** `@extension`'s options. */
export interface ExtensionOptions {
  /** The method's name; an extension of one unnamed method leaves it out. */
  op?: string;
  method?: "GET" | "POST";
  description?: string;
  /** The shape of its params; unknown ones are refused as `invalid_params`. */
  request?: z.ZodObject;
}

/** `@resource`'s options. */
export interface ResourceOptions {
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** Lets clients subscribe to changes, which `resourceUpdated(uri)` tells them. */
  subscribe?: boolean;
  /**
   * For a template: the resources that there are, as a function called with the environment as `this`, or the name of a
   * method. Then only they are served; any other URI is not found.
   */
  listed?: string | ((this: never, context: ResourceContext) => Listed | Promise<Listed>);
  /** For a template: what to propose for each of its parts. */
  complete?: Record<string, string | Completer>;
  meta?: JsonObject;
}

/** The resources of a template: each its URI, or with more than that. */
export type Listed = readonly (string | (Partial<ResourceDefinition> & { uri: string }))[];

/** `@prompt`'s options. */
export interface PromptOptions {
  /** Default: the method's name. */
  name?: string;
  title?: string;
  description?: string;
  /** The arguments: a zod object of strings. Optional ones needn't be given. */
  arguments?: z.ZodObject;
  /** What to propose for each argument: a function, or the name of a method. */
  complete?: Record<string, string | Completer>;
  meta?: JsonObject;
}

const EMPTY: ClassMetadata = {
  tools: new Map(),
  extensions: new Map(),
  operations: new Map(),
  resources: new Map(),
  prompts: new Map(),
  instructions: undefined,
  skill: undefined,
};

const KEY = Symbol("agent-env");

/** What a class and its parents declared. */
export function metadataOf(declaring: object): ClassMetadata {
  const metadata = (declaring as { [Symbol.metadata]?: DecoratorMetadataObject })[Symbol.metadata];
  return (metadata?.[KEY] as ClassMetadata | undefined) ?? EMPTY;
}

/** Changes a class's own copy: a subclass's metadata inherits its parent's, which must not be edited through it. */
export function declare(
  metadata: DecoratorMetadataObject,
  change: (now: ClassMetadata) => Partial<ClassMetadata>,
): void {
  const now = (metadata[KEY] as ClassMetadata | undefined) ?? EMPTY;
  metadata[KEY] = { ...now, ...change(now) };
}

/** A map with one entry more; the given one is left as it is. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}
