import type { z } from "zod";
import type { DataOperation } from "../protocol/card.js";
import type { ToolSpec } from "./define-tool.js";

// Node 22 and 24 have no Symbol.metadata; a decorator's context.metadata is only made where it exists when the class is
// evaluated. This module is the one that every decorator imports.
(Symbol as { metadata?: symbol }).metadata ??= Symbol.for("Symbol.metadata");

/** What the decorators of a class said, by method name. */
export interface ClassMetadata {
  readonly tools: ReadonlyMap<string, Omit<ToolSpec<z.ZodObject>, "name"> & { name?: string }>;
  readonly extensions: ReadonlyMap<string, ExtensionOptions & { uri: string }>;
  readonly operations: ReadonlyMap<DataOperation, string>;
  readonly resources: ReadonlyMap<string, ResourceOptions & { uri: string }>;
  readonly instructions: string | undefined;
  readonly skill: string | undefined;
}

export interface ExtensionOptions {
  /** The method's name; an extension of one unnamed method leaves it out. */
  op?: string;
  method?: "GET" | "POST";
  description?: string;
  /** The shape of its params; unknown ones are refused as `invalid_params`. */
  request?: z.ZodObject;
}

export interface ResourceOptions {
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

const EMPTY: ClassMetadata = {
  tools: new Map(),
  extensions: new Map(),
  operations: new Map(),
  resources: new Map(),
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
