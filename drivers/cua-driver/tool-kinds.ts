import type { JsonObject, ToolDefinition } from "../../src/protocol/tool.js";
import type { Deadlines } from "./daemon-client.js";

/** Reads that capture or walk the screen: they have the shorter deadline. */
const CAPTURES: ReadonlySet<string> = new Set([
  "get_accessibility_tree",
  "get_cursor_position",
  "get_desktop_state",
  "get_screen_size",
  "get_window_state",
  "list_windows",
  "zoom",
]);

/** These take the shared focus or replay whatever was recorded, whatever their arguments say. */
const ALWAYS_SHARED: ReadonlySet<string> = new Set(["bring_to_front", "replay_trajectory"]);

/** Whether a tool changes nothing, as its annotations say. */
export function isRead(tool: ToolDefinition): boolean {
  return tool.annotations?.readOnlyHint === true;
}

/** How long a call may take, in milliseconds; a capture that is told a longer time by its arguments has it. */
export function deadlineOf(tool: string, args: JsonObject, deadlines: Deadlines): number {
  if (!CAPTURES.has(tool)) return deadlines.call;
  const told = args.timeout_ms;
  return Math.min(deadlines.call, deadlines.capture + (typeof told === "number" && told > 0 ? told : 0));
}

/**
 * Whether a call uses the pointer, keyboard or focus that all callers share: desktop scope, delivery in the foreground, or
 * a batch or script with such a step. Others act on one window in the background, side by side.
 */
export function usesSharedInput(tool: ToolDefinition, args: JsonObject): boolean {
  if (isRead(tool)) return false;
  if (ALWAYS_SHARED.has(tool.name) || asksForShared(args)) return true;
  if (tool.name === "run_steps") return args.foreground_fallback === true || stepsOf(args).some(asksForShared);
  // A program can't be looked through, but without these words it can't ask for either.
  return tool.name === "run_script" && /foreground|desktop/.test(String(args.script));
}

/** Measured of 0.37.0: typing takes 10.1 ms a character. */
export const CHARACTER_MS = 10.5;

/** About how long the daemon types what a call, or a batch of them, gives it to type, in milliseconds. */
export function neededMs(args: JsonObject): number {
  return [args, ...stepsOf(args)].reduce((sum, { text }) => sum + characters(text) * CHARACTER_MS, 0);
}

function characters(text: unknown): number {
  if (typeof text !== "string") return 0;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function asksForShared(args: JsonObject): boolean {
  return args.delivery_mode === "foreground" || (args.scope === "desktop" && !hasWindow(args)) || onDesktop(args);
}

/** With a window named, desktop scope is only how its coordinates are counted. */
function hasWindow(args: JsonObject): boolean {
  return typeof args.pid === "number" || typeof args.window_id === "number";
}

function onDesktop(args: JsonObject): boolean {
  const target = args.target;
  return isObject(target) && target.kind === "desktop";
}

function stepsOf(args: JsonObject): JsonObject[] {
  const steps = args.steps;
  if (!Array.isArray(steps)) return [];
  return steps.filter(isObject).flatMap((step) => (isObject(step.args) ? [step.args] : []));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
