import type { JsonObject } from "../protocol/tool.js";
import type { Caller } from "./caller.js";
import { UriTemplate } from "./uri-template.js";

/** One resource as `resources/list` shows it; keys that we don't know are served as they are. */
export interface ResourceDefinition extends JsonObject {
  uri: string;
  name: string;
}

/** A resource as the environment serves it: how it is listed, and its content when it is read. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  /** Whether clients may subscribe to its changes, which `Environment.resourceUpdated` tells. */
  readonly subscribe?: boolean;
  /** The `contents` that `resources/read` answers. */
  read(context: ResourceContext): Promise<ResourceContent | ResourceContent[]> | ResourceContent | ResourceContent[];
}

/** Who reads a resource or gets a prompt. */
export interface ResourceContext {
  readonly caller: Caller;
  /** The caller's role, undefined for none. */
  readonly role: string | undefined;
  /** Aborted when the client cancels the request or its session closes. */
  readonly signal: AbortSignal;
}

/** One `contents` entry of a resource: its text, or its bytes. */
export interface ResourceContent extends JsonObject {
  uri: string;
  mimeType?: string;
  text?: string;
  /** Base64. */
  blob?: string;
}

/** What a template is listed as. */
export interface TemplateDefinition extends JsonObject {
  uriTemplate: string;
  name: string;
}

/** Proposes values for an argument of a prompt or a part of a template, from what is typed so far. */
export type Completer = (value: string, given: Readonly<Record<string, string>>) => string[] | Promise<string[]>;

/** Resources of one form: `orders://{order_id}`. */
export interface ServedTemplate {
  readonly definition: TemplateDefinition;
  readonly subscribe?: boolean;
  /** The resources there are now; with it only they are served, without it whatever fits the template. */
  listed?(context: ResourceContext): ResourceDefinition[] | Promise<ResourceDefinition[]>;
  read(
    uri: string,
    parts: Record<string, string>,
    context: ResourceContext,
  ): Promise<ResourceContent | ResourceContent[]> | ResourceContent | ResourceContent[];
  readonly complete?: Readonly<Record<string, Completer>>;
}

/** Whether a URI is a template. */
export function isTemplate(uri: string): boolean {
  return uri.includes("{");
}

/** What `resources/*` answers from: an environment's fixed resources and its templates. */
export class Resources {
  readonly #byUri: ReadonlyMap<string, ServedResource>;
  readonly #templates: readonly { served: ServedTemplate; template: UriTemplate }[];

  constructor(fixed: readonly ServedResource[], templates: readonly ServedTemplate[]) {
    this.#byUri = new Map(fixed.map((resource) => [resource.definition.uri, resource]));
    this.#templates = templates.map((served) => ({ served, template: new UriTemplate(served.definition.uriTemplate) }));
  }

  get empty(): boolean {
    return this.#byUri.size === 0 && this.#templates.length === 0;
  }

  get subscribable(): boolean {
    return [...this.#byUri.values(), ...this.templates].some((each) => each.subscribe === true);
  }

  /** Whether what is listed can change while the environment is served. */
  get changing(): boolean {
    return this.templates.some((template) => template.listed !== undefined);
  }

  get templates(): ServedTemplate[] {
    return this.#templates.map((each) => each.served);
  }

  get fixed(): ServedResource[] {
    return [...this.#byUri.values()];
  }

  async list(context: ResourceContext): Promise<ResourceDefinition[]> {
    const listed = await Promise.all(this.templates.map(async (each) => (await each.listed?.(context)) ?? []));
    return [...this.fixed.map((each) => each.definition), ...listed.flat()];
  }

  /** The contents of a resource, undefined where none has that URI. */
  async read(uri: string, context: ResourceContext): Promise<ResourceContent[] | undefined> {
    const fixed = this.#byUri.get(uri);
    if (fixed !== undefined) return [await fixed.read(context)].flat();
    const found = this.#find(uri);
    if (found === undefined) return undefined;
    const { served, parts } = found;
    if (served.listed !== undefined && !(await served.listed(context)).some((each) => each.uri === uri))
      return undefined;
    return [await served.read(uri, parts, context)].flat();
  }

  /** Whether clients may subscribe to the URI. */
  takesSubscribers(uri: string): boolean {
    return (this.#byUri.get(uri)?.subscribe ?? this.#find(uri)?.served.subscribe) === true;
  }

  #find(uri: string): { served: ServedTemplate; parts: Record<string, string> } | undefined {
    for (const { served, template } of this.#templates) {
      const parts = template.match(uri);
      if (parts !== undefined) return { served, parts };
    }
    return undefined;
  }
}
