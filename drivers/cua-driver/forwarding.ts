import type { ForwardedCall } from "../../src/environment/forwarded-server.js";
import { AgentEnvError } from "../../src/errors.js";
import { membersOf, memberText, withMember } from "../../src/protocol/json-text.js";
import { RawJson } from "../../src/protocol/raw-json.js";
import type { JsonObject, ToolDefinition } from "../../src/protocol/tool.js";
import type { DaemonClient } from "./daemon-client.js";
import type { DaemonReply } from "./daemon-reply.js";
import type { CallerSessions, SentCall } from "./sessions.js";
import { deadlineOf, isRead, neededMs, usesSharedInput } from "./tool-kinds.js";

export interface ForwardingOptions {
  readonly client: DaemonClient;
  readonly sessions: CallerSessions;
  /**
   * Runs a call that uses the shared pointer, keyboard or focus once it has its turn among the computer's inputs. The turn
   * is over when `settled` of what `send` returns resolves, which may be after its `reply`. Default: it is sent at once.
   */
  readonly turn?: (call: ForwardedCall, send: () => SentCall) => Promise<DaemonReply>;
  /** Called after each call that may have changed something: of a tool that isn't read-only, and not known to be refused. */
  readonly inputDelivered?: (call: ForwardedCall) => void;
  /** By tool, how long its calls may take in milliseconds; default: what is known of it. */
  readonly deadlines?: ReadonlyMap<string, number>;
}

/** A call whose arguments alone need longer than this is refused before anything is sent. */
const MAX_CALL_MS = 100_000;

/** Calls of cua-driver's tools, each sent once, in its caller's own session, and answered with what the daemon answered. */
export class ToolForwarding {
  readonly #tools: ReadonlyMap<string, ToolDefinition>;

  constructor(
    tools: readonly ToolDefinition[],
    private readonly options: ForwardingOptions,
  ) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /**
   * Calls a tool with arguments that are one JSON object as text; they go on as they are written. A tool that isn't among
   * those that it was built with is the daemon's to refuse.
   */
  async call(name: string, argumentsText: string, call: ForwardedCall): Promise<RawJson> {
    const { client, sessions, turn, inputDelivered, deadlines } = this.options;
    const tool = this.#tools.get(name) ?? { name, inputSchema: {} };
    const args = JSON.parse(argumentsText) as JsonObject;
    const shared = usesSharedInput(tool, args);
    if (shared) checkDuration(name, args);
    const reads = isRead(tool);
    const options = {
      reads,
      deadlineMs: deadlines?.get(name) ?? deadlineOf(name, args, client.deadlines),
      signal: call.signal,
    };
    const send = () => sessions.of(call.caller).call(name, new RawJson(argumentsText), options);
    let delivered = !reads;
    try {
      const reply = await (turn && shared ? turn(call, send) : send().reply);
      delivered &&= reply.ok;
      return toolResult(name, reply);
    } catch (thrown) {
      delivered &&= !(thrown instanceof AgentEnvError && thrown.applied === "no");
      throw thrown;
    } finally {
      if (delivered) inputDelivered?.(call);
    }
  }

  /**
   * What the daemon answers a tool that there isn't, for one that isn't served: another name is asked for, so that nothing
   * is called.
   */
  async unknown(name: string, call: ForwardedCall): Promise<RawJson> {
    const { text } = await this.call(NO_TOOL, "{}", call);
    return new RawJson(text.replaceAll(NO_TOOL, () => JSON.stringify(name).slice(1, -1)));
  }
}

const NO_TOOL = "agentenv_no_such_tool";

function checkDuration(tool: string, args: JsonObject): void {
  const needed = neededMs(args);
  if (needed <= MAX_CALL_MS) return;
  const seconds = Math.ceil(needed / 1000);
  throw new AgentEnvError(
    "invalid_argument",
    `${tool} was not sent: its text takes about ${seconds} s to type, and a call may take ${MAX_CALL_MS / 1000} s`,
    { hint: "split the text into several calls" },
  );
}

/**
 * The answer as `cua-driver mcp` gives it to its clients: a refusal of the daemon as a failed result, and a failed result
 * that doesn't say so itself with a code. Throws `internal` where it is no tool's result.
 */
export function toolResult(tool: string, reply: DaemonReply): RawJson {
  if (!reply.ok) {
    return new RawJson(
      JSON.stringify({
        content: [{ text: reply.error, type: "text" }],
        isError: true,
        structuredContent: { code: FAILED, exit_code: reply.exitCode },
      }),
    );
  }
  const result = reply.value as JsonObject | null;
  if (typeof result !== "object" || result === null || !Array.isArray(result.content)) {
    throw new AgentEnvError("internal", `cua-driver's answer to ${tool} is no tool's result`);
  }
  if (result.isError !== true) return reply.json;
  const { text } = reply.json;
  const coded = withCode(text, result.structuredContent);
  return coded === text ? reply.json : new RawJson(coded);
}

const FAILED = "tool_invocation_failed";

/** What says that a result failed, beside `isError`: with one of these it is left alone. Measured of 0.37.0. */
const SAYS_SO = ["refusal", "status", "code"];

/** Gives a failed result the code that says so, where nothing else does; in its place, as cua-driver sorts its keys. */
function withCode(text: string, structured: unknown): string {
  if (typeof structured !== "object" || structured === null || Array.isArray(structured)) {
    return withMember(text, "structuredContent", `{"code":"${FAILED}"}`);
  }
  if (SAYS_SO.some((key) => key in structured)) return text;
  const own = memberText(text, "structuredContent") ?? "{}";
  const members = membersOf(own) ?? new Map();
  const before = [...members].filter(([name]) => name < "code").at(-1)?.[1];
  const at = before?.end ?? own.indexOf("{") + 1;
  const code = `"code":"${FAILED}"`;
  const inserted = before !== undefined ? `,${code}` : members.size > 0 ? `${code},` : code;
  return withMember(text, "structuredContent", own.slice(0, at) + inserted + own.slice(at));
}
