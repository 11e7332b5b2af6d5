import { z } from "zod";
import { AgentEnvError, SetupError } from "../errors.js";
import type { PromptArgument } from "../protocol/prompt.js";
import type { SkillGetResult } from "../protocol/skill.js";
import type { Environment } from "./environment.js";
import type { ExtensionMethod, ServedExtension } from "./extension.js";
import { type Listed, metadataOf, type PromptOptions, type ResourceOptions } from "./metadata.js";
import { type PromptAnswer, type ServedPrompt, toPromptResult } from "./prompt.js";
import {
  type Completer,
  isTemplate,
  type ResourceContent,
  type ResourceContext,
  type ResourceDefinition,
  type ServedResource,
  type ServedTemplate,
} from "./resource.js";
import { describeIssues } from "./schema.js";
import { type SkillAnswer, toSkill } from "./skill.js";
import { UriTemplate } from "./uri-template.js";

/** An environment by its methods' names. */
export type Methods = Record<string, (...args: unknown[]) => unknown>;

/** The extensions of an environment's `@extension` methods. */
export function decoratedExtensions(environment: Environment): ServedExtension[] {
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

/** The resources of an environment's `@resource` methods. */
export function decoratedResources(environment: Environment): { fixed: ServedResource[]; templates: ServedTemplate[] } {
  const methods = environment as unknown as Methods;
  const fixed: ServedResource[] = [];
  const templates: ServedTemplate[] = [];
  for (const [method, options] of metadataOf(environment.constructor).resources) {
    const { uri, subscribe = false, listed, complete } = options;
    const shown = { name: options.name ?? method, ...shownOptions(options) };
    const contents = async (at: string, ...args: unknown[]) =>
      toContents(await methods[method]?.call(environment, ...args), at, options.mimeType);
    if (!isTemplate(uri)) {
      if (listed !== undefined || complete !== undefined) {
        throw new SetupError(`${uri} (${shown.name}) is one resource, with nothing to list or to complete`, {
          hint: "leave `listed` and `complete` out, or give its URI a {part}",
        });
      }
      fixed.push({ definition: { uri, ...shown }, subscribe, read: (context) => contents(uri, context) });
      continue;
    }
    const claim = `${uri} (${shown.name})`;
    checkMethod(environment, claim, listed);
    checkCompleters(environment, claim, "part", complete, new UriTemplate(uri).parts);
    templates.push({
      definition: { uriTemplate: uri, ...shown },
      subscribe,
      read: (at, parts, context) => contents(at, parts, context),
      ...(listed === undefined ? {} : { listed: (context) => list(environment, listed, shown, context) }),
      ...(complete === undefined ? {} : { complete: completers(environment, complete) }),
    });
  }
  return { fixed, templates };
}

function shownOptions({ title, description, mimeType, meta }: ResourceOptions) {
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

async function list(
  environment: Environment,
  listed: NonNullable<ResourceOptions["listed"]>,
  shown: Omit<ResourceDefinition, "uri">,
  context: ResourceContext,
): Promise<ResourceDefinition[]> {
  const listing = typeof listed === "string" ? (environment as unknown as Methods)[listed] : listed;
  const found = (await listing?.call(environment as never, context)) as Listed;
  return found.map((each) =>
    typeof each === "string" ? { ...shown, uri: each, name: each } : { ...shown, ...each, name: each.name ?? each.uri },
  );
}

function toContents(content: unknown, uri: string, mimeType: string | undefined): ResourceContent[] {
  const kind = mimeType === undefined ? {} : { mimeType };
  if (content instanceof Uint8Array) {
    return [{ uri, ...kind, blob: Buffer.from(content.buffer, content.byteOffset, content.length).toString("base64") }];
  }
  if (Array.isArray(content)) return content.map((each) => ({ uri, ...kind, ...each }));
  if (typeof content === "object" && content !== null) return [{ uri, ...kind, ...content }];
  return [{ uri, ...kind, text: String(content) }];
}

/** The prompts of an environment's `@prompt` methods. */
export function decoratedPrompts(environment: Environment): ServedPrompt[] {
  const methods = environment as unknown as Methods;
  return [...metadataOf(environment.constructor).prompts].map(([method, options]) => {
    const name = options.name ?? method;
    const taken = Object.keys(options.arguments?.shape ?? {});
    checkCompleters(environment, `the prompt "${name}"`, "argument", options.complete, taken);
    return {
      definition: { name, ...shownOptions(options as ResourceOptions), ...promptArguments(options) },
      async get(args, context) {
        const parsed = (options.arguments ?? z.object({})).safeParse(args);
        if (!parsed.success) throw new AgentEnvError("invalid_argument", `${name}: ${describeIssues(parsed.error)}`);
        return toPromptResult((await methods[method]?.call(environment, parsed.data, context)) as PromptAnswer);
      },
      ...(options.complete === undefined ? {} : { complete: completers(environment, options.complete) }),
    };
  });
}

function promptArguments(options: PromptOptions): { arguments?: PromptArgument[] } {
  if (options.arguments === undefined) return {};
  return {
    arguments: Object.entries(options.arguments.shape).map(([name, schema]) => {
      const type = schema as z.ZodType;
      const description = type.description;
      return {
        name,
        ...(description === undefined ? {} : { description }),
        required: !type.safeParse(undefined).success,
      };
    }),
  };
}

/** A method that is named and isn't there would be missed by a client, once it is served. */
function checkMethod(environment: Environment, what: string, named: unknown): void {
  if (typeof named !== "string" || typeof (environment as unknown as Methods)[named] === "function") return;
  throw new SetupError(`${what} names the method "${named}", which there isn't`, {
    hint: "name a method of the class, or give a function",
  });
}

function checkCompleters(
  environment: Environment,
  what: string,
  kind: "part" | "argument",
  complete: Readonly<Record<string, string | Completer>> = {},
  known: readonly string[],
): void {
  for (const [name, completer] of Object.entries(complete)) {
    if (!known.includes(name)) {
      throw new SetupError(`${what} has no ${kind} "${name}" to complete`, {
        hint: known.length > 0 ? `there are ${known.join(", ")}` : "there are none",
      });
    }
    checkMethod(environment, what, completer);
  }
}

function completers(
  environment: Environment,
  complete: Readonly<Record<string, string | Completer>>,
): Record<string, Completer> {
  const methods = environment as unknown as Methods;
  return Object.fromEntries(
    Object.entries(complete).map(([name, completer]) => [
      name,
      typeof completer === "string"
        ? (value, given) => methods[completer]?.call(environment, value, given) as ReturnType<Completer>
        : (value, given) => completer.call(environment, value, given),
    ]),
  );
}

/** The skill of an environment's `@agentSkill` method. */
export async function decoratedSkill(environment: Environment): Promise<SkillGetResult | undefined> {
  const { skill } = metadataOf(environment.constructor);
  if (skill === undefined) return undefined;
  return toSkill((await (environment as unknown as Methods)[skill]?.call(environment)) as SkillAnswer);
}
