import { randomUUID } from "node:crypto";
import { AgentEnvError, messageOf } from "../errors.js";
import { withMember } from "../protocol/json-text.js";
import type { SkillGetResult } from "../protocol/skill.js";
import type { CallToolResult, JsonObject, ToolResult } from "../protocol/tool.js";
import { type Collected, collect } from "./collect.js";
import { type CallContext, speaking, type ToolContext } from "./context.js";
import { attach, Environment, type Mounted } from "./environment.js";
import type { ServedExtension } from "./extension.js";
import type { ForwardedChange, ForwardedList, ForwardedServer } from "./forwarded-server.js";
import { callTool, Forwarding, toTool } from "./forwarding.js";
import { makeCard } from "./make-card.js";
import { Resources } from "./resource.js";
import { described, ForwardedTool, type ServedTool } from "./served-tool.js";
import { SkillViews } from "./skill.js";
import { NO_ROLE, ToolAccess } from "./tool-access.js";
import { toolAccessExtensions } from "./tool-access-extensions.js";
import { ToolLists } from "./tool-lists.js";
import { ToolFilter, type ToolNarrowing } from "./tool-narrowing.js";

/** What may have changed for clients: what a list answers, or the content of a resource. */
export type ApplicationChange =
  | { kind: "tools" | "resources" | "prompts" }
  | { kind: "updated"; uri: string }
  /** What a forwarded server says to all of its clients, as it wrote it. */
  | { kind: "said"; method: string; text: string };

/** Where the application says what went wrong inside, since callers get a code and no stack. */
export interface ApplicationLog {
  error(details: object, message: string): void;
}

/**
 * An environment that is built: what it serves is collected and checked, its card made, and its tool calls go through
 * tool access. Serving it over HTTP and MCP is the business of `src/http` and `src/mcp`.
 */
export class Application implements Mounted {
  readonly #tools = new Map<string, ServedTool>();
  readonly #listeners = new Set<(change: ApplicationChange) => void>();
  readonly resources: Resources;
  readonly #lists: ToolLists;
  readonly #skill: SkillViews | undefined;
  #card: string | undefined;
  /** The names that forwarded servers have or had, whether they are served or not. */
  readonly #behind: Set<string>;
  /** Those that their server lists no more. They stay callable, so that it says itself what it thinks of that. */
  #gone: ReadonlySet<string> = new Set();
  /** The descriptions that were changed since the environment was built, by name. */
  readonly #descriptions = new Map<string, string>();

  private constructor(
    readonly environment: Environment,
    private readonly collected: Collected,
    readonly access: ToolAccess,
    readonly extensions: readonly ServedExtension[],
    readonly forwarding: Forwarding,
    private readonly filter: ToolFilter,
    readonly log: ApplicationLog,
  ) {
    for (const tool of collected.tools) this.#serve(tool);
    this.#behind = new Set(forwarding.entries("tools").map(({ key }) => key));
    const extras = () => this.environment.toolListExtras();
    this.#lists = new ToolLists(access, this.#tools, this.#behind, this.#chooses, this.#descriptions, extras, filter);
    this.resources = new Resources(collected.resources, collected.templates);
    this.#skill =
      collected.skill &&
      new SkillViews(
        collected.skill,
        access,
        filter,
        () => this.tools.map(({ definition }) => definition.name),
        (skill, allows) => environment.skillFor(skill, allows),
      );
  }

  /**
   * Collects and checks all that `environment` serves, its tools narrowed to those that are wanted. Throws a SetupError for
   * what can't be served.
   */
  static async build(
    environment: Environment,
    log: ApplicationLog,
    narrowing: ToolNarrowing = {},
  ): Promise<Application> {
    const filter = new ToolFilter(narrowing);
    let built: Application | undefined;
    const forwarding = await Forwarding.open(environment.forwardedServers(), (server, change) => {
      try {
        if (built !== undefined) built.#forwardedChanged(server, change);
      } catch (thrown) {
        log.error({ err: thrown, server: server.name }, "what a server behind has changed can't be taken over");
      }
    });
    const skillOf = (role: string | undefined) => built?.skill(role);
    const collected = await collect(environment, forwarding, filter, skillOf).catch(async (thrown: unknown) => {
      await forwarding.close();
      throw thrown;
    });
    const hidden = collected.tools.filter((tool) => tool.hiddenByDefault).map((tool) => tool.definition.name);
    const access = new ToolAccess(hidden);
    const application: Application = new Application(
      environment,
      collected,
      access,
      [...collected.extensions, ...toolAccessExtensions(access, () => application.#toolsChanged())],
      forwarding,
      filter,
      log,
    );
    built = application;
    attach(environment, application);
    environment.mounted(application);
    return application;
  }

  get name(): string {
    return this.collected.name;
  }

  get instructions(): string | undefined {
    return this.collected.instructions || undefined;
  }

  get prompts(): Collected["prompts"] {
    return this.collected.prompts;
  }

  get data(): Collected["data"] {
    return this.collected.data;
  }

  get tools(): ServedTool[] {
    return [...this.#tools.values()].filter(({ definition }) => !this.#gone.has(definition.name));
  }

  /** The environment's skill as a role sees it, one object for all who see the same; undefined for none. */
  skill(role: string | undefined): SkillGetResult | undefined {
    return this.#skill?.of(role);
  }

  /** Whether calls of a tool go to a server behind as they come, whatever is in them. */
  isBehind(name: string): boolean {
    return this.#behind.has(name) || (!this.#tools.has(name) && this.#unlistedTo !== undefined);
  }

  /** The server that gets calls of tools that aren't known to be its own; none where servedTools() chooses, which wasn't asked. */
  get #unlistedTo(): ForwardedServer | undefined {
    return this.#chooses ? undefined : this.forwarding.only;
  }

  get #chooses(): boolean {
    return this.environment.servedTools !== Environment.prototype.servedTools;
  }

  /** Runs `listener` at every change that clients are told. Returns a function that takes it back. */
  onChange(listener: (change: ApplicationChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #serve(tool: ServedTool): void {
    const { name } = tool.definition;
    if (!this.filter.servesAll(name)) return;
    const description = this.#descriptions.get(name);
    this.#tools.set(name, description === undefined ? tool : described(tool, description));
  }

  #toolsChanged(): void {
    this.#lists.changed();
    this.#card = undefined;
    this.tell({ kind: "tools" });
  }

  /** Takes over how a forwarded server lists its tools now. Those who see its list are told by the server itself. */
  #forwardedChanged(server: ForwardedServer, change: ForwardedChange): void {
    if (change.kind === "said") {
      this.tell(change);
      return;
    }
    if (change.kind !== "tools") {
      this.forwarding.changed(server, change);
      return;
    }
    const items = change.list.items.filter(({ key }) => this.#behind.has(key) || !this.#tools.has(key));
    // What may throw comes first, so that a list is taken over whole or not at all.
    const served = this.environment.servedTools(items.map((item) => toTool(server, item)));
    this.forwarding.changed(server, change);
    for (const { key } of items) this.#behind.add(key);
    this.#gone = new Set([...this.#behind].filter((name) => !this.forwarding.listsTool(name)));
    for (const tool of served) this.#serve(tool);
    this.#lists.changed();
    this.#skill?.changed();
    this.#card = undefined;
    // Whoever was told by the server may have looked before servedTools() was asked.
    if (this.#chooses) this.tell({ kind: "tools" });
  }

  /** Tells the clients of a change. */
  tell(change: ApplicationChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** Changes how a served tool is described, on the card and in `tools/list` alike. */
  updateTool(name: string, change: { description: string }): void {
    this.updateTools(new Map([[name, change.description]]));
  }

  /** Changes several descriptions at once, with one notification. */
  updateTools(descriptions: ReadonlyMap<string, string>): void {
    for (const [name, description] of descriptions) {
      const tool = this.#tools.get(name);
      if (tool === undefined) throw new RangeError(`no served tool is named ${JSON.stringify(name)}`);
      this.#descriptions.set(name, description);
      this.#tools.set(name, described(tool, description));
    }
    this.#toolsChanged();
  }

  /** Ends what the environment has at the servers that it forwards. Idempotent. */
  close(): Promise<void> {
    return this.forwarding.close();
  }

  /** The card as JSON text, with those of the environments behind this one as they are now. */
  async card(): Promise<string> {
    const children = await this.environment.childCards();
    return children === undefined
      ? this.cardJson()
      : withMember(this.cardJson(), "children_environments", JSON.stringify(children));
  }

  /** The card without children as JSON text, made anew only after a change. */
  cardJson(): string {
    this.#card ??= JSON.stringify(makeCard(this.name, this.tools, this.extensions, this.data));
    return this.#card;
  }

  /** The result of `tools/list` for a role as JSON text; with the lists of the servers behind, as the caller sees them. */
  toolListJson(role: string | undefined, behind: readonly ForwardedList[] = []): string {
    return this.#lists.json(role, behind);
  }

  /** Whether callers of a role may call a tool: it is served to them and not disabled. */
  allows(name: string, role: string | undefined): boolean {
    return this.filter.serves(name, role) && !this.access.isDisabled(role, name);
  }

  /**
   * The server that gets a caller's calls of a tool just as the client writes them, undefined where somebody here has a say in
   * them. Most forwarded calls go this way, which needs no context of a call.
   */
  passesOn(name: string, role: string | undefined): ForwardedServer | undefined {
    const tool = this.#tools.get(name);
    if (!(tool instanceof ForwardedTool) || !this.allows(name, role)) return undefined;
    return this.environment.onToolCall === Environment.prototype.onToolCall ? tool.passesOnTo : undefined;
  }

  /** How a tool call that failed is answered. */
  failure(thrown: unknown, tool: string, signal: AbortSignal, callId?: string): CallToolResult {
    if (thrown instanceof AgentEnvError) return errorResult(thrown);
    // A tool that throws what its call was cancelled with does what it should.
    if (thrown !== signal.reason) this.log.error({ err: thrown, tool, callId }, "a tool failed in an unforeseen way");
    return errorResult(new AgentEnvError("internal", `the tool "${tool}" failed: ${messageOf(thrown)}`));
  }

  /**
   * Calls a tool for a caller. A refusal or a failure is a result with `isError`; undefined means that no tool of that name
   * is served.
   */
  async callTool(name: string, args: JsonObject, call: CallContext): Promise<ToolResult | undefined> {
    const { caller, role, signal, progress, client } = call;
    const isServed = this.filter.serves(name, role);
    const tool = isServed ? this.#tools.get(name) : undefined;
    const context: ToolContext = {
      caller,
      role,
      signal,
      progress,
      client,
      tool: name,
      arguments: args,
      callId: randomUUID(),
      ...speaking(call, this.environment.logs),
    };
    try {
      const behind = !isServed || this.#behind.has(name) ? undefined : this.#unlistedTo;
      if (tool === undefined) {
        const answer = await this.environment.onUnknownTool(context);
        // A server behind may have tools that it shows to some callers alone, and says itself what it doesn't know.
        if (answer !== undefined || behind === undefined) return answer;
      }
      if (this.access.isDisabled(call.role, name)) {
        throw new AgentEnvError(
          "permission_denied",
          `the tool "${name}" is disabled for the role "${call.role ?? NO_ROLE}"`,
          {
            hint: "use a tool that tools/list shows you",
          },
        );
      }
      // Most environments answer none, which is no promise to wait for.
      const answered = this.environment.onToolCall(context);
      if (answered !== undefined) {
        const answer = await answered;
        if (answer !== undefined) return answer;
      }
      if (tool !== undefined) return await tool.call(args, context);
      return behind && (await callTool(behind, args, context));
    } catch (thrown) {
      return this.failure(thrown, name, signal, context.callId);
    }
  }
}

/** An error as a tool answers it. */
export function errorResult(error: AgentEnvError): CallToolResult {
  return {
    content: [{ type: "text", text: `${error.code}: ${error.message}` }],
    structuredContent: { ...error.fields() },
    isError: true,
  };
}
