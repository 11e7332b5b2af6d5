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
import type { ServedExtension } from "./extension.js";
import type { Forwarding } from "./forwarding.js";
import { metadataOf } from "./metadata.js";
import type { ServedPrompt } from "./prompt.js";
import type { ServedResource, ServedTemplate } from "./resource.js";
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
  const own = (uri: string, name: string): Claim => ({ uri, of: name });
  const behind = (kind: "resources" | "resourceTemplates") =>
    forwarding.entries(kind).map(({ key, server }): Claim => ({ uri: key, of: `the server ${server}`, server }));
  const fixed = [...resources.map(({ definition }) => own(definition.uri, definition.name)), ...behind("resources")];
  const parsed = [
    ...templates.map(({ definition }) => own(definition.uriTemplate, definition.name)),
    ...behind("resourceTemplates"),
  ].flatMap((claim) => {
    const template = templateOf(claim);
    return template === undefined ? [] : [{ claim, template }];
  });
  for (const [index, { claim, template }] of parsed.entries()) {
    // What one server has in common with itself is its own business.
    const isOther = ({ server }: Claim) => server === undefined || server !== claim.server;
    const other =
      fixed.find((each) => isOther(each) && template.match(each.uri) !== undefined) ??
      parsed.slice(index + 1).find((each) => isOther(each.claim) && template.overlaps(each.template))?.claim;
    if (other === undefined) continue;
    throw new SetupError(`some URI is claimed twice: by ${claim.uri} (${claim.of}) and by ${other.uri} (${other.of})`, {
      hint: "give one of them another form",
    });
  }
}

/** A URI or a template, and whose it is. */
interface Claim {
  readonly uri: string;
  readonly of: string;
  /** Undefined for the environment's own. */
  readonly server?: string;
}

/** Undefined for a server's template of a kind that we don't read, which claims nothing. */
function templateOf({ uri, server }: Claim): UriTemplate | undefined {
  try {
    return new UriTemplate(uri);
  } catch (thrown) {
    if (server !== undefined && thrown instanceof SetupError) return undefined;
    throw thrown;
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
