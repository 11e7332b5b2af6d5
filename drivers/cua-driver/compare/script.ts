import type { JsonObject } from "../../../src/protocol/tool.js";

/** What a step may take from earlier answers on the same side. */
export interface Found {
  /** A window that is open, the first that is listed. */
  window: { pid: number; window_id: number };
  /** The token of an element in it. */
  token: string;
  /** A name for a session of cua-driver, of the same length on both sides: it is one client's alone. */
  label: string;
}

type Arguments = JsonObject | ((found: Found) => JsonObject);

/** One call of a tool, its arguments as they are or made from what earlier answers said. */
export type Step = readonly [
  tool: string,
  args: Arguments,
  /** Whether the window is read by the same side right before, since who read it last matters. */
  options?: { readonly afterReading: true },
];

const inWindow =
  (args: JsonObject = {}) =>
  (found: Found) => ({ ...found.window, ...args });
const labelled =
  (args: JsonObject = {}) =>
  (found: Found) => ({ session: found.label, ...args });

/**
 * Calls of every kind: good ones, wrong arguments, tools that there aren't, sessions that have ended, images, and results
 * of more than a megabyte. In order, since a later call may depend on an earlier one; what they do to the desktop is small
 * and the same on both sides.
 */
export const SCRIPT: readonly Step[] = [
  // Reads.
  ["get_screen_size", {}],
  ["get_cursor_position", {}],
  ["list_windows", {}],
  ["list_windows", { app: "no such app" }],
  ["list_apps", {}],
  ["get_config", {}],
  ["get_session", {}],
  ["list_sessions", {}],
  ["get_guide", {}],
  ["get_guide", { topic: "no such topic" }],
  ["get_window_state", inWindow()],
  ["get_window_state", inWindow({ query: "Open" })],
  ["get_accessibility_tree", {}],
  // Images.
  ["get_desktop_state", {}],
  ["zoom", inWindow({ x1: 0, y1: 0, x2: 50, y2: 50 }), { afterReading: true }],
  // Arguments that are wrong, or more than a tool takes.
  ["get_screen_size", { bogus: 1 }],
  ["get_screen_size", { session: 5 }],
  ["get_screen_size", { session: "" }],
  ["get_screen_size", { _session_id: "stolen" }],
  ["get_window_state", {}],
  ["get_window_state", { pid: 1 }],
  ["get_window_state", { pid: 1, window_id: 1 }],
  ["get_window_state", { pid: "1", window_id: "1" }],
  ["click", {}],
  ["click", { x: "nowhere" }],
  ["click", { x: 1.5, y: 2.0, scope: "desktop" }],
  ["click", { element_token: "s0000000a:11", pid: 1 }],
  ["click", (found) => ({ ...found.window, element_token: "s0000000a:99999" })],
  ["click", { scope: "desktop", x: 5000, y: 10 }],
  ["click", { scope: "desktop", x: 5, y: 5, button: "back" }],
  ["drag", { scope: "desktop", from_x: 1 }],
  ["scroll", { scope: "desktop", direction: "sideways", x: 1, y: 1 }],
  ["press_key", { scope: "desktop", key: "é" }],
  ["press_key", { scope: "desktop" }],
  ["type_text", {}],
  ["type_text", { text: 5, scope: "desktop" }],
  ["set_value", { value: 'quotes " and \\ and \u0007 and 😀', pid: 1, window_id: 1 }],
  ["zoom", { window_id: 1, x1: 0, y1: 0, x2: 1, y2: 1 }],
  ["launch_app", {}],
  ["launch_app", { name: "no-such-program" }],
  ["launch_app", { name: 5 }],
  ["run_steps", { steps: [] }],
  ["run_steps", { steps: [{ tool: "no_such_tool", args: {} }] }],
  ["run_script", { script: "not a program (" }],
  // Input that changes little.
  ["click", { scope: "desktop", x: 5, y: 5 }],
  ["press_key", { scope: "desktop", key: "shift" }],
  ["type_text", { scope: "desktop", text: "" }],
  ["scroll", { scope: "desktop", x: 5, y: 5, direction: "down", amount: 1 }],
  ["press_key", inWindow({ key: "shift" })],
  ["click", (found) => ({ ...found.window, element_token: found.token }), { afterReading: true }],
  // Values of every form, there and back.
  ["run_script", { script: "return {a: 1.5, b: 'é', c: [1, 2.0, -0, 9007199254740993], d: null}" }],
  [
    "run_steps",
    {
      steps: [
        { tool: "get_screen_size", args: {} },
        { tool: "list_windows", args: {} },
      ],
    },
  ],
  // Tools that there aren't.
  ["no_such_tool", {}],
  ["", { x: 1 }],
  ["get_screen_size ", {}],
  ["computer_nothing", {}],
  // Sessions: one that is named, what it knows, its end, and calls for it afterwards.
  ["start_session", labelled()],
  ["get_session_state", labelled()],
  ["get_session", labelled()],
  ["get_screen_size", labelled()],
  ["end_session", labelled()],
  ["get_screen_size", labelled()],
  ["get_window_state", (found) => ({ ...found.window, session: found.label })],
  ["end_session", labelled()],
  ["end_session", { session: "never-was" }],
  ["end_session", {}],
  ["get_screen_size", {}],
  // More than a megabyte.
  ["run_script", { script: 'return "é✅x".repeat(300_000)' }],
];

/** Requests that aren't calls of a tool, and calls that are none: each is refused. */
export const ODD_REQUESTS: readonly (readonly [method: string, params: JsonObject])[] = [
  ["tools/call", {}],
  ["tools/call", { name: 5 }],
  ["tools/call", { name: "get_screen_size", arguments: [] }],
  ["tools/call", { name: "get_screen_size", arguments: "x" }],
  ["tools/call", { name: "get_screen_size", arguments: null }],
  ["tools/call", { name: "get_screen_size" }],
  ["tools/call", { name: "get_screen_size", arguments: {}, _meta: { unknown: 1 } }],
  ["resources/list", { cursor: "x" }],
  ["resources/read", {}],
  ["resources/read", { uri: 5 }],
  ["resources/read", { uri: "skill://cua-driver/NOTHING.md" }],
  ["resources/read", { uri: "file:///etc/passwd" }],
  ["resources/templates/list", {}],
  ["resources/subscribe", { uri: "skill://cua-driver/SKILL.md" }],
  ["prompts/list", {}],
  ["prompts/get", { name: "x" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "x" }, argument: { name: "a", value: "" } }],
  ["logging/setLevel", { level: "info" }],
  ["skills/list", { cursor: "x" }],
  ["skills/get", {}],
  ["skills/get", { uri: "skill://cua-driver/LINUX.md" }],
  ["skills/get", { name: "cua-driver" }],
  ["skills/nothing", {}],
  ["nothing/at/all", {}],
  ["ping", {}],
];
