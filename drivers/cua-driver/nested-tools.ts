import { AgentEnvError } from "../../src/errors.js";
import type { JsonObject } from "../../src/protocol/tool.js";

/** Tools that run other tools which can't be told from their arguments: a program, a recording. */
const ANY: ReadonlySet<string> = new Set(["run_script", "replay_trajectory"]);

/** Whether a tool runs other tools of cua-driver. */
export function runsTools(tool: string): boolean {
  return tool === "run_steps" || ANY.has(tool);
}

/**
 * Refuses a call that would run a tool inside cua-driver which its caller may not call by itself: a step of `run_steps`, or
 * whatever a program or a recording holds, where the caller lacks any tool at all.
 */
export function refuseNested(
  tool: string,
  args: JsonObject,
  all: readonly string[],
  allowed: (tool: string) => boolean,
): void {
  const within = ANY.has(tool) ? all : tool === "run_steps" ? steps(args, new Set(all)) : [];
  const denied = within.filter((name) => !allowed(name));
  if (denied.length === 0) return;
  const message = ANY.has(tool)
    ? `${tool} can run any tool, and ${denied.length} of them are not this caller's`
    : `${tool} has steps of tools that are not this caller's: ${[...new Set(denied)].join(", ")}`;
  throw new AgentEnvError("permission_denied", message, {
    hint: "call the tools that tools/list shows you one by one",
  });
}

/** The tools of the steps, written as `{tool, args}` or `{<tool>: args}`, and of the observation after them. */
function steps(args: JsonObject, known: ReadonlySet<string>): string[] {
  const list = Array.isArray(args.steps) ? args.steps : [];
  const named = list.flatMap((step: unknown) => {
    if (typeof step !== "object" || step === null) return [];
    const { tool } = step as { tool?: unknown };
    return [...(typeof tool === "string" ? [tool] : []), ...Object.keys(step).filter((key) => known.has(key))];
  });
  return args.observe === undefined ? named : [...named, "get_window_state"];
}
