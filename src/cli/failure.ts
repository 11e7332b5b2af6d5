import { styleText } from "node:util";
import { AgentEnvError, messageOf, SetupError } from "../errors.js";

/**
 * Says on standard error what went wrong, as a person reads it: the message, then what to do. A stack trace is for a fault
 * of ours alone, and for whoever asks for it with AGENTENV_DEBUG.
 */
export function reportFailure(thrown: unknown): void {
  const red = (text: string) => styleText("red", text, { stream: process.stderr });
  const lines = messageOf(thrown)
    .split("\n")
    .map((line) => `${red("agentenv:")} ${line}`);
  const { hint } = thrown as { hint?: unknown };
  if (typeof hint === "string") lines.push(...hint.split("\n").map((line) => `  ${line}`));
  const foreseen = thrown instanceof SetupError || thrown instanceof AgentEnvError;
  if (!foreseen) lines.push("  this is a fault of agentenv itself; AGENTENV_DEBUG=1 shows where");
  if (process.env.AGENTENV_DEBUG) {
    for (let each = thrown; each instanceof Error; each = each.cause) lines.push(each.stack ?? "");
  }
  process.stderr.write(`${lines.join("\n")}\n`);
}
