import { z } from "zod";
import { closest } from "../../src/closest.js";
import { SetupError } from "../../src/errors.js";
import type { Deadlines } from "./daemon-client.js";

/** Below the 120 s that a client's transport waits, whatever is set. */
const MAX_DEADLINE_S = 110;

const allowed = `a number of seconds above 0, up to ${MAX_DEADLINE_S}`;
const Deadline = z.number({ error: allowed }).gt(0, { error: allowed }).max(MAX_DEADLINE_S, { error: allowed });

/** `[settings.driver]` of an env whose driver is cua-driver. */
export const CuaSettings = z.strictObject({
  /** How long a call of a tool may take. */
  call_deadline_s: Deadline.default(MAX_DEADLINE_S),
  /** How long a call may take that captures or reads the screen. */
  capture_deadline_s: Deadline.default(15),
  /** How long `metadata` may take, which is answered whatever else runs: a daemon that doesn't hangs and is restarted. */
  metadata_deadline_s: Deadline.default(2),
  /** How long the start of a session and the daemon's own lists may take. */
  control_deadline_s: Deadline.default(4),
  /** By a tool's name, how long its calls may take. */
  tool_deadlines_s: z.record(z.string(), Deadline).default({}),
  /** Whether the computer is ready only with an accessibility bus, for an env whose agents read accessibility trees. */
  needs_accessibility: z.boolean({ error: "true or false" }).default(false),
});
export type CuaSettings = z.infer<typeof CuaSettings>;

/** Checks `[settings.driver]`. Throws a SetupError that names the key, what it may be, and the closest one there is. */
export function readSettings(given: Readonly<Record<string, unknown>>): CuaSettings {
  const parsed = CuaSettings.safeParse(given);
  if (parsed.success) return parsed.data;
  const names = Object.keys(CuaSettings.shape);
  const problems = parsed.error.issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") {
      const value = issue.path.reduce((at: unknown, key) => (at as Record<PropertyKey, unknown>)?.[key], given);
      return [`${issue.path.join(".")} is ${JSON.stringify(value)}, and may be: ${issue.message}`];
    }
    return issue.keys.map((key) => {
      const near = closest(key, names);
      return `cua-driver has no setting "${key}"${near === undefined ? "" : `, did you mean "${near}"?`}`;
    });
  });
  throw new SetupError(problems.map((problem) => `[settings.driver]: ${problem}`).join("\n"), {
    hint: `the settings of cua-driver are ${names.join(", ")}`,
  });
}

/** The deadlines in milliseconds. */
export function deadlinesOf(settings: CuaSettings): Deadlines {
  return {
    call: settings.call_deadline_s * 1000,
    capture: settings.capture_deadline_s * 1000,
    metadata: settings.metadata_deadline_s * 1000,
    control: settings.control_deadline_s * 1000,
  };
}
