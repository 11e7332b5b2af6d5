import type { Delivery } from "../../src/computer/operations.js";
import { AgentEnvError } from "../../src/errors.js";
import type { CallToolResult, ContentBlock, JsonObject, TextContent } from "../../src/protocol/tool.js";
import type { DaemonClient } from "./daemon-client.js";
import type { DaemonReply, Picture } from "./daemon-reply.js";

/** The framework's own calls of cua-driver's tools: in desktop scope, in its own unnamed session. */
export class DesktopCalls {
  constructor(private readonly client: DaemonClient) {}

  /** A tool that changes nothing. Where it fails the computer can't be read: `device_unavailable`, applied no. */
  async read(tool: string, signal: AbortSignal): Promise<{ result: CallToolResult; pictures: readonly Picture[] }> {
    const deadlineMs = this.client.deadlines.capture;
    const reply = await this.client.call(tool, {}, { reads: true, deadlineMs, signal }).reply;
    const failure = failureOf(reply);
    if (failure !== undefined) {
      throw new AgentEnvError("device_unavailable", `cua-driver can't do ${tool}: ${failure}`, {
        hint: "the display may be restarting; call again in a moment",
      });
    }
    const { value, pictures } = reply as Extract<DaemonReply, { ok: true }>;
    return { result: value as CallToolResult, pictures };
  }

  /**
   * An input in desktop scope, sent once. The input queue's turn lasts until the daemon has answered or died, since closing
   * the connection doesn't stop it. An input that it answers as failed may have been applied in part.
   */
  async input(tool: string, args: JsonObject, signal: AbortSignal, delivery: Delivery): Promise<void> {
    const exchange = this.client.call(tool, { scope: "desktop", ...args }, { reads: false, signal });
    delivery.outlast(exchange.settled);
    const failure = failureOf(await exchange.reply);
    if (failure !== undefined) {
      throw new AgentEnvError("delivery_failed", `cua-driver couldn't do ${tool} as asked: ${failure}`, {
        hint: "take a screenshot to see what happened before you try again",
      });
    }
    delivery.sent();
  }
}

/** What the daemon says of a call that failed, undefined for one that didn't. */
function failureOf(reply: DaemonReply): string | undefined {
  if (!reply.ok) return reply.error;
  const result = reply.value as Partial<CallToolResult> | null;
  if (!Array.isArray(result?.content)) return "its answer is no tool's result";
  return result.isError === true ? textOf(result.content) : undefined;
}

function textOf(content: readonly ContentBlock[]): string {
  return content
    .filter((block): block is TextContent => block.type === "text")
    .map((block) => block.text)
    .join(" ");
}
