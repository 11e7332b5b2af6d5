import type { FastifyInstance } from "fastify";
import type { Card, DataOperation } from "../protocol/card.js";
import type { SkillGetResult } from "../protocol/skill.js";
import type { JsonObject, ToolResult } from "../protocol/tool.js";
import type { Application } from "./application.js";
import type { ToolContext } from "./context.js";
import type { ServedExtension } from "./extension.js";
import type { ForwardedServer } from "./forwarded-server.js";
import type { ServedPrompt } from "./prompt.js";
import type { ServedResource, ServedTemplate } from "./resource.js";
import type { ForwardedTool, ServedTool } from "./served-tool.js";
import { type AppOptions, environmentServer, type ServeOptions, type Serving } from "./serving.js";

/** Why an environment isn't ready, or that it is. */
export interface Readiness {
  ready: boolean;
  reasons: string[];
}

/** What of an environment can be changed once it is built. */
export interface Mounted {
  /** The tools that are served. */
  readonly tools: readonly ServedTool[];
  /** Changes how a served tool is described, on the card and in `tools/list` alike. Throws a RangeError for one that isn't served. */
  updateTool(name: string, change: { description: string }): void;
  /** Changes several descriptions at once, with one notification. */
  updateTools(descriptions: ReadonlyMap<string, string>): void;
}

/** By environment, the applications that are built from it. */
const applications = new WeakMap<Environment, Set<Application>>();

function applicationsOf(environment: Environment): Set<Application> {
  return applications.get(environment) ?? new Set();
}

/** Ties an application to its environment, so that what the environment tells reaches the clients. */
export function attach(environment: Environment, application: Application): void {
  applications.set(environment, applicationsOf(environment).add(application));
}

/**
 * The base of every environment. A subclass decorates methods (`@tool`, `@extension`, `@resource`, …) or overrides the
 * hooks below, which are asked when the environment is built.
 */
export abstract class Environment {
  /** The card's name, unless the environment variable ENVIRONMENT_NAME gives another; default: the class's name. */
  get environmentName(): string {
    return this.constructor.name;
  }

  /** The version that `initialize` reports. */
  get environmentVersion(): string {
    return "0.0.0";
  }

  /** Tools as values, beside the decorated methods. */
  tools(): ServedTool[] {
    return [];
  }

  /** Another server's tools. */
  forwardedTools(): ForwardedTool[] | Promise<ForwardedTool[]> {
    return [];
  }

  /** Other MCP servers, all of which is forwarded: what `forwardMcp` makes. */
  forwardedServers(): ForwardedServer[] {
    return [];
  }

  /** Keys that `tools/list` carries beside `tools`. */
  toolListExtras(): JsonObject {
    return {};
  }

  /** Extensions as values, beside the decorated methods. */
  extensions(): ServedExtension[] {
    return [];
  }

  /** Features of a decorated extension, beside its methods on the card. */
  extensionParams(_uri: string): JsonObject {
    return {};
  }

  /** Resources as values, beside the decorated methods. */
  resources(): ServedResource[] {
    return [];
  }

  /** Resource templates as values, beside the decorated methods. */
  resourceTemplates(): ServedTemplate[] {
    return [];
  }

  /** Prompts as values, beside the decorated methods. */
  prompts(): ServedPrompt[] {
    return [];
  }

  /** The skill that `skill/v1` and MCP serve, for an environment without an `@agentSkill` method. */
  skill(): SkillGetResult | undefined | Promise<SkillGetResult | undefined> {
    return undefined;
  }

  /**
   * The environment's skill for those who may call the tools that `allows` says yes to: what names no other tool. Asked
   * once for all who may call the same. Its files have the same paths for all.
   */
  skillFor(skill: SkillGetResult, _allows: (tool: string) => boolean): SkillGetResult {
    return skill;
  }

  /** Whether tools log to their clients with `context.log()`: what serves MCP's logging. */
  get logs(): boolean {
    return false;
  }

  /** The text that `initialize` carries. */
  instructions(): string | undefined {
    return undefined;
  }

  /** Which of the tools are served. */
  servedTools(tools: ServedTool[]): ServedTool[] {
    return tools;
  }

  /** Which of the extensions are served and on the card; those of tool access always are. */
  servedExtensions(extensions: ServedExtension[]): ServedExtension[] {
    return extensions;
  }

  /** Which of the data plane's operations are served, of those that have a method. */
  servedOperations(operations: DataOperation[]): DataOperation[] {
    return operations;
  }

  /** Called once, when all that it serves is collected and before anything is served: to change descriptions later. */
  mounted(_application: Mounted): void {}

  /** Called before every tool call that the caller is allowed; what it returns is the answer, undefined lets the call go on. */
  onToolCall(_context: ToolContext): ToolResult | undefined | Promise<ToolResult | undefined> {
    return undefined;
  }

  /** Answers a call of a tool that isn't served; undefined leaves it to MCP's own error. */
  onUnknownTool(_context: ToolContext): ToolResult | undefined | Promise<ToolResult | undefined> {
    return undefined;
  }

  /** What `/startupz` answers: whether it has come up, however it is now. */
  async startup(): Promise<Readiness> {
    return this.readiness();
  }

  /**
   * The cards of environments that are served behind this one, with endpoints that are reached through it; undefined for
   * none. Asked whenever the card is read.
   */
  childCards(): Card[] | undefined | Promise<Card[] | undefined> {
    return undefined;
  }

  /** Adds routes of its own to the app that serves it, under the same checks as the others. */
  routes(_app: FastifyInstance): void {}

  /** What `/readyz` answers. */
  async readiness(): Promise<Readiness> {
    return { ready: true, reasons: [] };
  }

  /** Changes how a served tool is described, on the card and in `tools/list` alike, and tells the clients. */
  updateTool(name: string, change: { description: string }): void {
    for (const application of applicationsOf(this)) application.updateTool(name, change);
  }

  /** Tells the clients that subscribed to a resource that its content has changed. */
  resourceUpdated(uri: string): void {
    for (const application of applicationsOf(this)) application.tell({ kind: "updated", uri });
  }

  /** Tells the clients that other resources are listed than before. */
  resourcesChanged(): void {
    for (const application of applicationsOf(this)) application.tell({ kind: "resources" });
  }

  /**
   * Serves the environment over HTTP. It is closed with what is answered: `await using serving = await env.serve();`.
   * Throws a SetupError for what can't be served, or a port that can't be had.
   */
  serve(options: ServeOptions = {}): Promise<Serving> {
    return environmentServer().serve(this, options);
  }

  /** The fastify app that serves the environment: to mount it elsewhere, or to test it with `inject`. */
  app(options: AppOptions = {}): Promise<FastifyInstance> {
    return environmentServer().app(this, options);
  }

  /** Lets go of what the environment holds. Idempotent. */
  async close(): Promise<void> {}
}
