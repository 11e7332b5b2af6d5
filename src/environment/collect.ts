import { z } from "zod";
import { SetupError } from "../errors.js";
import type { DataOperation } from "../protocol/card.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { ToolContext } from "./context.js";
import { defineTool, jsonSchemaOf } from "./define-tool.js";
import type { Environment } from "./environment.js";
import type { ExtensionMethod, ServedExtension } from "./extension.js";
import { metadataOf } from "./metadata.js";
import type { ResourceContent, ServedResource } from "./resource.js";
import type { ServedTool } from "./served-tool.js";

/** The data plane's handlers, those that the environment serves. */
export interface DataHandlers {
  "data/reset"?: () => void | Promise<void>;
  "data/add"?: (parts: Part[]) => void | Promise<void>;
  "data/get"?: (params: GetDataParams) => Part[] | Promise<Part[]>;
}

/** All that an environment serves, from its decorated methods and its hooks, each name once. */
export interface Collected {
  name: string;
  tools: ServedTool[];
  extensions: ServedExtension[];
  resources: ServedResource[];
  data: DataHandlers;
  instructions: string | undefined;
}

type Methods = Record<string, (...args: unknown[]) => unknown>;

/** Reads an environment's class and hooks. A name served twice is a SetupError that names both. */
export async function collect(environment: Environment): Promise<Collected> {
  const name = process.env.ENVIRONMENT_NAME || environment.environmentName;
  const tools = await collectTools(environment, name);
  const extensions = environment.servedExtensions([...decoratedExtensions(environment), ...environment.extensions()]);
  const resources = [...decoratedResources(environment), ...environment.resources()];
  const metadata = metadataOf(environment.constructor);
  const methods = environment as unknown as Methods;
  const decorated = metadata.instructions === undefined ? undefined : methods[metadata.instructions]?.call(environment);
  refuseTwice(
    "extension",
    extensions.map((each) => [each.uri, "an extension"]),
  );
  refuseTwice(
    "resource",
    resources.map((each) => [each.definition.uri, "a resource"]),
  );
  return {
    name,
    tools,
    extensions,
    resources,
    data: dataHandlers(environment),
    instructions: (decorated as string | undefined) ?? environment.instructions(),
  };
}

async function collectTools(environment: Environment, name: string): Promise<ServedTool[]> {
  const methods = environment as unknown as Methods;
  const decorated = [...metadataOf(environment.constructor).tools].map(([method, options]) =>
    defineTool(
      { ...options, name: (options.name ?? method).replaceAll("{environment_name}", name) },
      (args: unknown, context: ToolContext) => methods[method]?.call(environment, args, context),
    ),
  );
  const own = [...decorated, ...environment.tools()];
  const forwarded = await environment.forwardedTools();
  refuseTwice("tool", [
    ...own.map((tool): [string, string] => [tool.definition.name, "a tool of the environment"]),
    ...forwarded.map((tool): [string, string] => [tool.definition.name, "a forwarded tool"]),
  ]);
  return environment.servedTools([...own, ...forwarded]);
}

function refuseTwice(what: string, named: [name: string, origin: string][]): void {
  const seen = new Map<string, string>();
  for (const [name, origin] of named) {
    const first = seen.get(name);
    if (first !== undefined) {
      throw new SetupError(`the ${what} "${name}" is served twice: by ${first} and by ${origin}`, {
        hint: "give one of them another name, or leave one out with servedTools() or [tools]",
      });
    }
    seen.set(name, origin);
  }
}

function decoratedExtensions(environment: Environment): ServedExtension[] {
  const methods = environment as unknown as Methods;
  const byUri = new Map<string, { description: string; methods: ExtensionMethod[] }>();
  for (const [method, options] of metadataOf(environment.constructor).extensions) {
    const entry = byUri.get(options.uri) ?? { description: "", methods: [] };
    entry.description ||= options.description ?? "";
    entry.methods.push({
      name: options.op ?? method,
      ...(options.op === undefined ? {} : { op: options.op }),
      method: options.method ?? "POST",
      request: options.request ?? z.strictObject({}),
      handle: (params: unknown, context) => methods[method]?.call(environment, params, context),
    } as ExtensionMethod);
    byUri.set(options.uri, entry);
  }
  return [...byUri].map(([uri, entry]) => ({ uri, ...entry, params: () => environment.extensionParams(uri) }));
}

function decoratedResources(environment: Environment): ServedResource[] {
  const methods = environment as unknown as Methods;
  return [...metadataOf(environment.constructor).resources].map(([method, { uri, ...options }]) => ({
    definition: { uri, name: options.name ?? method, ...options },
    read: async (): Promise<ResourceContent> => {
      const content = await methods[method]?.call(environment);
      const mimeType = options.mimeType === undefined ? {} : { mimeType: options.mimeType };
      return Buffer.isBuffer(content)
        ? { uri, ...mimeType, blob: content.toString("base64") }
        : { uri, ...mimeType, text: String(content) };
    },
  }));
}

function dataHandlers(environment: Environment): DataHandlers {
  const methods = environment as unknown as Methods;
  const declared = metadataOf(environment.constructor).operations;
  const served = new Set(environment.servedOperations([...declared.keys()]));
  const handlers: Partial<Record<DataOperation, (...args: unknown[]) => unknown>> = {};
  for (const [operation, method] of declared) {
    if (served.has(operation)) handlers[operation] = (...args) => methods[method]?.apply(environment, args);
  }
  return handlers as DataHandlers;
}

/** An extension as the card declares it. */
export function cardParams(extension: ServedExtension, endpointOf: (method: ExtensionMethod) => string) {
  const features = extension.params?.() ?? {};
  if (extension.methods.length === 0) return features;
  const unnamed = extension.methods.find((method) => method.op === undefined);
  const methods = Object.fromEntries(
    extension.methods.map((method) => [
      method.name,
      {
        method: method.method,
        ...(method === unnamed ? {} : { endpoint: endpointOf(method) }),
        request: jsonSchemaOf(method.request, "input"),
      },
    ]),
  );
  return { ...features, ...(unnamed === undefined ? {} : { endpoint: endpointOf(unnamed) }), methods };
}
