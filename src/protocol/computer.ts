import { z } from "zod";

/** The wire shapes of computer/v1: its URNs, the results of its tools, its extensions' requests. Source: AgentEnv protocol 1.0. */

export const COMPUTER_URN = "urn:agentenv:computer/v1";
export const READY_URN = "urn:agentenv:computer-ready/v1";
export const DISPLAY_URN = "urn:agentenv:computer-display/v1";
export const SPACES_URN = "urn:agentenv:computer-spaces/v1";
export const POINTER_URN = "urn:agentenv:computer-pointer/v1";
export const KEYBOARD_URN = "urn:agentenv:computer-keyboard/v1";
export const EXEC_URN = "urn:agentenv:computer-exec/v1";

/** The tools whose description says what the default coordinate space is. */
export const POINT_TOOLS = [
  "computer_screenshot",
  "computer_click",
  "computer_drag",
  "computer_scroll",
  "computer_pointer_move",
  "computer_pointer_down",
  "computer_pointer_up",
] as const;

export const Space = z.enum(["frame", "norm"]);
export type Space = z.infer<typeof Space>;

/** The norm grid's size. */
export const NORM_SCALE = { min: 1, max: 1_000_000 } as const;

/** The pointer's buttons. */
export const BUTTONS = ["left", "right", "middle", "back", "forward"] as const;
/** One of the pointer's buttons. */
export type Button = (typeof BUTTONS)[number];

/** Where a scroll goes. */
export const ScrollDirection = z.enum(["up", "down", "left", "right"]);
/** Where a scroll goes. */
export type ScrollDirection = z.infer<typeof ScrollDirection>;

/** The display: its resolution in screen pixels, and how many pixels of a capture there are for one of the screen. */
export const Display = z.object({ width: z.int(), height: z.int(), scale: z.number() });
/** The display's resolution and scale. */
export type Display = z.infer<typeof Display>;

export const FrameData = z.object({
  frame_id: z.string(),
  /** In pixels of the image. */
  width: z.int(),
  height: z.int(),
  display: Display,
  parent_frame_id: z.string().optional(),
  /** ISO 8601, UTC. */
  captured_at: z.string(),
});
export type FrameData = z.infer<typeof FrameData>;

export const ScreenshotResult = FrameData.extend({ summary: z.string() });
export type ScreenshotResult = z.infer<typeof ScreenshotResult>;

/** What a driver could confirm that an input did; what it doesn't know is left out. */
export const Effect = z.object({
  focus_changed: z.boolean().optional(),
  pointer_moved: z.boolean().optional(),
  clipboard_used: z.boolean().optional(),
  detail: z.string().optional(),
});
/** What an input is known to have done. */
export type Effect = z.infer<typeof Effect>;

export const InputResult = z.object({
  summary: z.string(),
  applied: z.enum(["yes", "no", "unknown"]),
  delivery: z.enum(["foreground", "background"]),
  /** Inputs of other callers since the frame that the call named was captured. */
  others_since_frame: z.int().min(0),
  effect: Effect.optional(),
  /** The fresh frame, where one was asked for. */
  frame: FrameData.optional(),
});
export type InputResult = z.infer<typeof InputResult>;

export const WaitResult = z.object({
  summary: z.string(),
  waited_ms: z.int().min(0),
  frame: FrameData.optional(),
});
export type WaitResult = z.infer<typeof WaitResult>;

/** A point of the screen, in screen pixels. */
export const ScreenPoint = z.object({ x: z.int(), y: z.int() });
/** A point of the screen, in screen pixels. */
export type ScreenPoint = z.infer<typeof ScreenPoint>;

export const PointerPositionResult = z.object({
  summary: z.string(),
  screen: ScreenPoint,
  frame_id: z.string().optional(),
  /** In pixels of the frame, which may lie outside it. */
  x: z.int().optional(),
  y: z.int().optional(),
  inside_frame: z.boolean().optional(),
});
export type PointerPositionResult = z.infer<typeof PointerPositionResult>;

export const PointerListResult = z.object({
  summary: z.string(),
  pointers: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(["foreground", "background"]),
      label: z.string(),
      default: z.boolean(),
    }),
  ),
});
export type PointerListResult = z.infer<typeof PointerListResult>;

/** One of computer-ready's checks. */
export const ReadyCheck = z.object({ name: z.string(), ok: z.boolean(), detail: z.string() });
/** One of computer-ready's checks. */
export type ReadyCheck = z.infer<typeof ReadyCheck>;

/** What computer-ready answers. */
export const ReadyStatus = z.object({ ready: z.boolean(), checks: z.array(ReadyCheck) });
/** What computer-ready answers. */
export type ReadyStatus = z.infer<typeof ReadyStatus>;

// The extensions' requests check types alone, so that a value out of its range is `invalid_argument` and not
// `invalid_params`, as in the published protocol.

export const NoParams = z.strictObject({});

export const SetDisplayRequest = z.strictObject({
  width: z.int(),
  height: z.int(),
  /** Default: the scale as it is. */
  scale: z.number().nullish(),
});
export const DisplayAnswer = Display.extend({ modes: z.array(z.tuple([z.int(), z.int()])) });
export type DisplayAnswer = z.infer<typeof DisplayAnswer>;

export const SetSpacesRequest = z.strictObject({
  /** `frame` or `norm`. */
  default_space: z.string(),
  default_norm_scale: z.int().nullish(),
});
export const SpacesAnswer = z.object({ default_space: Space, default_norm_scale: z.int() });
export type SpacesAnswer = z.infer<typeof SpacesAnswer>;

/** What computer-keyboard's numbers may be, in milliseconds. */
export const KEYBOARD_RANGES = {
  tap_hold_ms: { min: 0, max: 1_000 },
  type_delay_ms: { min: 0, max: 1_000 },
  max_hold_ms: { min: 0, max: 600_000 },
} as const;

export const SetKeyboardRequest = z.strictObject({
  tap_hold_ms: z.int().nullish(),
  type_delay_ms: z.int().nullish(),
  layout: z.string().nullish(),
  max_hold_ms: z.int().nullish(),
});
export const KeyboardAnswer = z.object({
  tap_hold_ms: z.int(),
  type_delay_ms: z.int(),
  layout: z.string(),
  max_hold_ms: z.int(),
});
export type KeyboardAnswer = z.infer<typeof KeyboardAnswer>;

/** The longest that a command may be given, in seconds. */
export const MAX_EXEC_TIMEOUT_S = 3_600;

export const ExecRequest = z.strictObject({
  /** The program and its arguments; no shell reads them. */
  argv: z.array(z.string()),
  /** Names the command: repeating it joins the running command or answers its result again. */
  request_id: z.string(),
  /** Relative to the session user's home. */
  cwd: z.string().nullish(),
  /** Added to the session's environment. */
  env: z.record(z.string(), z.string()).nullish(),
  timeout_s: z.number().nullish(),
});
export type ExecRequest = z.infer<typeof ExecRequest>;

export const ExecAnswer = z.object({
  /** Null when the command was killed at its timeout; negative, the signal's number, when a signal ended it. */
  exit_code: z.int().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  /** Whether some output was cut. */
  truncated: z.boolean(),
  timed_out: z.boolean(),
});
export type ExecAnswer = z.infer<typeof ExecAnswer>;
