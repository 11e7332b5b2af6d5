import type { ToolContext } from "../../src/environment/context.js";
import { ForwardedTool } from "../../src/environment/served-tool.js";
import { AgentEnvError } from "../../src/errors.js";
import { RawJson } from "../../src/protocol/raw-json.js";
import type { JsonObject, ToolDefinition } from "../../src/protocol/tool.js";
import type { DaemonClient } from "./daemon-client.js";
import type { DaemonReply } from "./daemon-reply.js";
import type { CallerSessions, SentCall } from "./sessions.js";
import { deadlineOf, isRead, usesSharedInput } from "./tool-kinds.js";

export interface ForwardingOptions {
  readonly client: DaemonClient;
  readonly sessions: CallerSessions;
  /**
   * Runs a call that uses the shared pointer, keyboard or focus once it has its turn among the computer's inputs. The turn
   * is over when `settled` of what `send` returns resolves, which may be after its `reply`. Default: it is sent at once.
   */
  readonly turn?: (tool: string, args: JsonObject, context: ToolContext, send: () => SentCall) => Promise<DaemonReply>;
  /** Called after each call that may have changed something: of a tool that isn't read-only, and not known to be refused. */
  readonly inputDelivered?: (tool: string, context: ToolContext) => void;
}

/**
 * cua-driver's tools as we serve them: listed as it lists them, called with the arguments that came, each in its caller's
 * own session, and answered with what the daemon answered.
 */
export function forwardTools(definitions: readonly ToolDefinition[], options: ForwardingOptions): ForwardedTool[] {
  return definitions.map((tool) => new ForwardedTool(tool, (args, context) => forward(tool, args, context, options)));
}

async function forward(
  tool: ToolDefinition,
  args: JsonObject,
  context: ToolContext,
  options: ForwardingOptions,
): Promise<RawJson> {
  const { client, sessions, turn, inputDelivered } = options;
  const reads = isRead(tool);
  const call = { reads, deadlineMs: deadlineOf(tool.name, args, client.deadlines), signal: context.signal };
  const send = () => sessions.of(context.caller).call(tool.name, args, call);
  let delivered = !reads;
  try {
    const reply = await (turn && usesSharedInput(tool, args) ? turn(tool.name, args, context, send) : send().reply);
    delivered &&= reply.ok;
    return toolResult(tool.name, reply);
  } catch (thrown) {
    delivered &&= !(thrown instanceof AgentEnvError && thrown.applied === "no");
    throw thrown;
  } finally {
    if (delivered) inputDelivered?.(tool.name, context);
  }
}

/**
 * The answer as `cua-driver mcp` gives it to its clients: a refusal of the daemon as a failed result, and a failed result
 * that says no more than its text with a code of its own. Throws `internal` where it is no tool's result.
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
  if (result.isError !== true || "structuredContent" in result) return new RawJson(reply.text);
  return new RawJson(`${reply.text.trimEnd().slice(0, -1)},"structuredContent":{"code":"${FAILED}"}}`);
}

const FAILED = "tool_invocation_failed";
