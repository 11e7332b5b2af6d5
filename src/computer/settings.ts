import { z } from "zod";
import { closest } from "../closest.js";
import { messageOf, SetupError } from "../errors.js";
import { KEYBOARD_RANGES, MAX_EXEC_TIMEOUT_S, NORM_SCALE, Space } from "../protocol/computer.js";
import { RelativePath } from "../protocol/data-plane.js";

/** The environment variable that holds a computer's settings as one JSON object. */
export const SETTINGS_VARIABLE = "AGENTENV_COMPUTER_SETTINGS";
/** Where env.toml has them. */
const TOML_TABLE = "[settings]";
/** A result is kept in memory for as long as its request may be repeated. */
const MAX_OUTPUT_BYTES = 64 << 20;

const milliseconds = ({ min, max }: { min: number; max: number }) =>
  whole(`a whole number of milliseconds from ${min} to ${max}`, min, max);

function whole(allowed: string, min: number, max: number) {
  return z.int({ error: allowed }).min(min, { error: allowed }).max(max, { error: allowed });
}

function seconds(max: number) {
  const allowed = `a number of seconds above 0, up to ${max}`;
  return z.number({ error: allowed }).gt(0, { error: allowed }).max(max, { error: allowed });
}

/**
 * A computer's settings: the defaults that its calls use and its extensions change. Names, ranges and defaults are the
 * published protocol's.
 */
export const ComputerSettings = z.strictObject({
  /** What `data/get` returns: files and folders, relative to the session user's home. */
  data_paths: z.array(RelativePath, { error: "a list of paths relative to the session user's home" }).default([]),
  default_space: Space.default("frame"),
  default_norm_scale: whole(
    `a whole number from ${NORM_SCALE.min} to ${NORM_SCALE.max}`,
    NORM_SCALE.min,
    NORM_SCALE.max,
  ).default(1_000),
  /** How long an input call waits for its turn. */
  queue_wait_s: seconds(3_600).default(30),
  tap_hold_ms: milliseconds(KEYBOARD_RANGES.tap_hold_ms).default(50),
  type_delay_ms: milliseconds(KEYBOARD_RANGES.type_delay_ms).default(10),
  /** Keys that computer_keyboard_down left down are released after this time. */
  max_hold_ms: milliseconds(KEYBOARD_RANGES.max_hold_ms).default(10_000),
  layout: z.string({ error: "the name of a keyboard layout" }).min(1).default("us"),
  /** How long a drag takes that names no duration. */
  drag_duration_ms: milliseconds({ min: 0, max: 100_000 }).default(500),
  /** How much of each of a command's outputs is kept. */
  exec_output_bytes: whole(`a whole number of bytes from 1 to ${MAX_OUTPUT_BYTES}`, 1, MAX_OUTPUT_BYTES).default(
    1 << 20,
  ),
  /** How long a command may run that names no time. */
  exec_timeout_s: seconds(MAX_EXEC_TIMEOUT_S).default(60),
  /** Settings of the driver's own, which it checks itself. */
  driver: z.record(z.string(), z.unknown(), { error: "an object of the driver's own settings" }).default({}),
});
/** A computer's settings, each with its default. */
export type ComputerSettings = z.infer<typeof ComputerSettings>;

/**
 * The settings that AGENTENV_COMPUTER_SETTINGS and env.toml's [settings] give, the variable's over the file's, key by key;
 * those of [settings.driver] too.
 * Throws a SetupError that says where the key is that is wrong, and what it may be.
 */
export function loadSettings(
  environment: Readonly<Record<string, string | undefined>>,
  fromToml: Readonly<Record<string, unknown>> = {},
): ComputerSettings {
  // Each source is checked by itself, so that a message names the place where the mistake is.
  const { driver: tomlDriver } = check(fromToml, TOML_TABLE);
  const fromVariable = readVariable(environment[SETTINGS_VARIABLE]);
  const { driver: variableDriver } = check(fromVariable, SETTINGS_VARIABLE);
  return check({ ...fromToml, ...fromVariable, driver: { ...tomlDriver, ...variableDriver } }, SETTINGS_VARIABLE);
}

function readVariable(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text.trim() === "") return {};
  const hint = 'it is one JSON object, such as {"queue_wait_s": 10}';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new SetupError(`${SETTINGS_VARIABLE} is not JSON: ${messageOf(thrown)}`, { hint, cause: thrown });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SetupError(`${SETTINGS_VARIABLE} is not a JSON object`, { hint });
  }
  return value as Record<string, unknown>;
}

function check(values: Readonly<Record<string, unknown>>, source: string): ComputerSettings {
  const parsed = ComputerSettings.safeParse(values);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.flatMap((issue) => describe(issue, values));
  throw new SetupError(problems.map((problem) => `${source}: ${problem}`).join("\n"), {
    hint: `the settings are ${Object.keys(ComputerSettings.shape).join(", ")}`,
  });
}

function describe(issue: z.core.$ZodIssue, values: Readonly<Record<string, unknown>>): string[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const near = closest(key, Object.keys(ComputerSettings.shape));
      return `there is no setting "${key}"${near === undefined ? "" : `, did you mean "${near}"?`}`;
    });
  }
  const [key, ...rest] = issue.path.map(String);
  const given = JSON.stringify(values[key ?? ""]);
  return [`${[key, ...rest].join(".")} is ${given}, and may be: ${issue.message}`];
}
