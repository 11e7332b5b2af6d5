import type { z } from "zod";
import { AgentEnvError } from "../errors.js";
import { LOG_LEVELS, type LogLevel } from "../protocol/prompt.js";
import type { ContentBlock, JsonObject } from "../protocol/tool.js";
import type { Caller } from "./caller.js";
import type { ClientPeer } from "./client-peer.js";
import { describeIssues, jsonSchemaOf } from "./schema.js";

/** What is known about one tool call; a tool method's last parameter. */
export interface ToolContext {
  readonly caller: Caller;
  /** The caller's role, undefined for none. */
  readonly role: string | undefined;
  readonly tool: string;
  /** The arguments as they arrived, before validation. */
  readonly arguments: JsonObject;
  readonly callId: string;
  /** Aborted when the client cancels the call or its session closes. */
  readonly signal: AbortSignal;
  /** The client that called; undefined for a call that came another way than over MCP. */
  readonly client?: ClientPeer | undefined;
  /** Reports progress to a client that asked for it; does nothing for one that didn't. */
  progress(progress: number, total?: number, message?: string): void;
  /**
   * Sends a log message to the client, unless it asked for more serious ones alone. The environment declares that it logs
   * (`get logs() { return true; }`); one that doesn't gets a TypeError.
   */
  log(level: LogLevel, data: unknown, logger?: string): void;
  /** Lets the client's model write a message. `unsupported` where the client can't. */
  sample(request: SampleRequest): Promise<SampleResult>;
  /**
   * Asks the person behind the client. The content of an accepted answer is checked against `schema`, a zod object of
   * primitive members. `unsupported` where the client can't ask.
   */
  elicit<S extends z.ZodObject>(message: string, schema: S): Promise<Elicited<z.output<S>>>;
  /** The same with a JSON Schema, sent as it is; the answer is not checked against it. */
  elicit(message: string, schema: JsonObject): Promise<Elicited<JsonObject>>;
  /**
   * Lets go of the client's connection while the call goes on: the client polls for the answer, the first time after
   * `retryMs` milliseconds. For a long call. Does nothing for a client that can't poll.
   */
  detach(retryMs?: number): void;
}

/** A request to the client's model. Source: Model Context Protocol 2025-11-25, `sampling/createMessage`. */
export interface SampleRequest extends JsonObject {
  messages: { role: "user" | "assistant"; content: ContentBlock | ContentBlock[] }[];
  maxTokens: number;
  systemPrompt?: string;
  temperature?: number;
  stopSequences?: string[];
}

/** What the client's model wrote. */
export interface SampleResult extends JsonObject {
  role: "user" | "assistant";
  content: ContentBlock | ContentBlock[];
  model: string;
  stopReason?: string;
}

/** What a person answered, or that none was given. */
export type Elicited<T> = { action: "accept"; content: T } | { action: "decline" | "cancel" };

/** What a call brings; the application adds the tool's name, a call id and the ways to speak to the client. */
export type CallContext = Pick<ToolContext, "caller" | "role" | "signal" | "progress" | "client">;

/** The client of one call, as its context gives it to the tool. */
export function speaking(
  { client, signal }: CallContext,
  logs: boolean,
): Pick<ToolContext, "log" | "sample" | "elicit" | "detach"> {
  const ask = (method: string, capability: string, params: JsonObject): Promise<JsonObject> => {
    if (client?.session.capabilities[capability] === undefined) {
      throw new AgentEnvError("unsupported", `the client doesn't have the capability "${capability}"`, {
        hint: "call the tool from a client that declares it in initialize",
      });
    }
    return client.ask(method, params, signal);
  };
  return {
    log(level, data, logger) {
      if (!logs) throw new TypeError("an environment that logs to its clients says so: get logs() { return true; }");
      if (!LOG_LEVELS.includes(level)) throw new TypeError(`${JSON.stringify(level)} is no log level`);
      client?.notify("notifications/message", { level, ...(logger === undefined ? {} : { logger }), data });
    },
    async sample(request) {
      return (await ask("sampling/createMessage", "sampling", request)) as SampleResult;
    },
    async elicit(message: string, schema: z.ZodObject | JsonObject) {
      const typed = isZod(schema);
      const requestedSchema = typed ? jsonSchemaOf(schema, "input") : schema;
      const answer = (await ask("elicitation/create", "elicitation", {
        message,
        requestedSchema,
      })) as Elicited<JsonObject>;
      if (answer.action !== "accept" || !typed) return answer as never;
      const checked = schema.safeParse(answer.content);
      if (checked.success) return { ...answer, content: checked.data } as never;
      throw new AgentEnvError("delivery_failed", `the client's answer doesn't fit: ${describeIssues(checked.error)}`);
    },
    detach(retryMs = 1_000) {
      client?.detach(retryMs);
    },
  };
}

function isZod(schema: z.ZodObject | JsonObject): schema is z.ZodObject {
  return "safeParse" in schema;
}
