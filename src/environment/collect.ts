import { SetupError } from "../errors.js";
import type { DataOperation } from "../protocol/card.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { SkillGetResult } from "../protocol/skill.js";
import type { ToolContext } from "./context.js";
import {
  decoratedExtensions,
  decoratedPrompts,
  decoratedResources,
  decoratedSkill,
  type Methods,
} from "./decorated.js";
import { defineTool } from "./define-tool.js";
import type { Environment } from "./environment.js";
import type { ExtensionMethod, ServedExtension } from "./extension.js";
import type { Forwarding } from "./forwarding.js";
import { metadataOf } from "./metadata.js";
import type { ServedPrompt } from "./prompt.js";
import type { ServedResource, ServedTemplate } from "./resource.js";
import { jsonSchemaOf } from "./schema.js";
import type { ServedTool } from "./served-tool.js";
import { skillExtension } from "./skill.js";
import type { ToolFilter } from "./tool-narrowing.js";
import { UriTemplate } from "./uri-template.js";

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
  templates: ServedTemplate[];
  prompts: ServedPrompt[];
  data: DataHandlers;
  /** Empty for none. */
  instructions: string;
  /** Undefined for none. */
  skill: SkillGetResult | undefined;
}

/**
 * Reads an environment's class and hooks. A name served twice is a SetupError that names both, and so is one that `filter`
 * knows and no tool has. `skillOf` is asked, once all is built, for the skill as a role sees it.
 */
export async function collect(
  environment: Environment,
  forwarding: Forwarding,
  filter: ToolFilter,
  skillOf: (role: string | undefined) => SkillGetResult | undefined,
): Promise<Collected> {
  const name = process.env.ENVIRONMENT_NAME || environment.environmentName;
  const tools = await collectTools(environment, name, forwarding);
  filter.check(tools.map((tool) => tool.definition.name));
  const metadata = metadataOf(environment.constructor);
  const methods = environment as unknown as Methods;
  const decorated = metadata.instructions === undefined ? undefined : methods[metadata.instructions]?.call(environment);
  const skill = (await decoratedSkill(environment)) ?? (await environment.skill());
  const extensions = environment.servedExtensions([
    ...decoratedExtensions(environment),
    ...(skill === undefined ? [] : [skillExtension(skillOf)]),
    ...environment.extensions(),
  ]);
  const own = decoratedResources(environment);
  const resources = [...own.fixed, ...environment.resources()];
  const templates = [...own.templates, ...environment.resourceTemplates()];
  const prompts = [...decoratedPrompts(environment), ...environment.prompts()];
  refuseTwice(
    "extension",
    extensions.map((each) => [each.uri, "an extension"]),
  );
  refuseTwice("prompt", [
    ...prompts.map((each): [string, string] => [each.definition.name, "a prompt of the environment"]),
    ...forwarding.entries("prompts").map(({ key, server }): [string, string] => [key, `the server ${server}`]),
  ]);
  refuseOverlaps(resources, templates, forwarding);
  return {
    name,
    tools,
    extensions,
    resources,
    templates,
    prompts,
    data: dataHandlers(environment),
    instructions: [(decorated as string | undefined) ?? environment.instructions() ?? [], forwarding.instructions]
      .flat()
      .join("\n\n"),
    skill,
  };
}

async function collectTools(environment: Environment, name: string, forwarding: Forwarding): Promise<ServedTool[]> {
  const methods = environment as unknown as Methods;
  const decorated = [...metadataOf(environment.constructor).tools].map(([method, options]) =>
    defineTool(
      { ...options, name: (options.name ?? method).replaceAll("{environment_name}", name) },
      (args: unknown, context: ToolContext) => methods[method]?.call(environment, args, context),
    ),
  );
  const own = [...decorated, ...environment.tools()];
  const forwarded = await environment.forwardedTools();
  const behind = forwarding.tools();
  refuseTwice("tool", [
    ...own.map((tool): [string, string] => [tool.definition.name, "a tool of the environment"]),
    ...forwarded.map((tool): [string, string] => [tool.definition.name, "a forwarded tool"]),
    ...forwarding.entries("tools").map(({ key, server }): [string, string] => [key, `the server ${server}`]),
  ]);
  return environment.servedTools([...own, ...forwarded, ...behind]);
}

/** One URI has one resource, whether it is claimed as it is or by a template. */
function refuseOverlaps(
  resources: readonly ServedResource[],
  templates: readonly ServedTemplate[],
  forwarding: Forwarding,
): void {
  refuseTwice("resource", [
    ...resources.map((each): [string, string] => [each.definition.uri, `the resource ${each.definition.name}`]),
    ...forwarding.entries("resources").map(({ key, server }): [string, string] => [key, `the server ${server}`]),
  ]);
  refuseTwice("resource template", [
    ...templates.map((each): [string, string] => [each.definition.uriTemplate, each.definition.name]),
    ...forwarding
      .entries("resourceTemplates")
      .map(({ key, server }): [string, string] => [key, `the server ${server}`]),
  ]);
  const parsed = templates.map(({ definition }) => ({ definition, template: new UriTemplate(definition.uriTemplate) }));
  for (const [index, { definition, template }] of parsed.entries()) {
    const other =
      resources.find((each) => template.match(each.definition.uri) !== undefined)?.definition ??
      parsed.slice(index + 1).find((each) => template.overlaps(each.template))?.definition;
    if (other === undefined) continue;
    const claim = "uri" in other ? other.uri : other.uriTemplate;
    throw new SetupError(
      `some URI is claimed twice: by ${definition.uriTemplate} (${definition.name}) and by ${String(claim)} (${other.name})`,
      { hint: "give one of them another form" },
    );
  }
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
