import { describe, expect, it } from "vitest";
import { loadSettings, SETTINGS_VARIABLE } from "../../../src/computer/settings.js";
import { SetupError } from "../../../src/errors.js";

function refused(variable: string | undefined, toml: Record<string, unknown> = {}): SetupError {
  try {
    loadSettings({ [SETTINGS_VARIABLE]: variable }, toml);
  } catch (thrown) {
    if (thrown instanceof SetupError) return thrown;
    throw thrown;
  }
  throw new Error("it was not refused");
}

describe("a computer's settings", () => {
  it("have the protocol's defaults", () => {
    expect(loadSettings({})).toEqual({
      data_paths: [],
      default_space: "frame",
      default_norm_scale: 1000,
      queue_wait_s: 30,
      tap_hold_ms: 50,
      type_delay_ms: 10,
      max_hold_ms: 10_000,
      layout: "us",
      drag_duration_ms: 500,
      exec_output_bytes: 1_048_576,
      exec_timeout_s: 60,
      driver: {},
    });
  });

  it("come from env.toml, and key by key from the variable where it names them", () => {
    const settings = loadSettings(
      { [SETTINGS_VARIABLE]: '{"queue_wait_s": 5, "default_space": "norm"}' },
      { queue_wait_s: 10, tap_hold_ms: 0, data_paths: ["out"] },
    );
    expect(settings).toMatchObject({ queue_wait_s: 5, default_space: "norm", tap_hold_ms: 0, data_paths: ["out"] });
    expect(loadSettings({ [SETTINGS_VARIABLE]: " " }, { tap_hold_ms: 1 }).tap_hold_ms).toBe(1);
    const driver = loadSettings({ [SETTINGS_VARIABLE]: '{"driver": {"b": 3}}' }, { driver: { a: 1, b: 2 } }).driver;
    expect(driver).toEqual({ a: 1, b: 3 });
  });

  it.each([
    ['{"tap_hold_ms": 1001}', "tap_hold_ms is 1001, and may be: a whole number of milliseconds from 0 to 1000"],
    ['{"max_hold_ms": -1}', "max_hold_ms is -1, and may be: a whole number of milliseconds from 0 to 600000"],
    ['{"type_delay_ms": 1.5}', "type_delay_ms is 1.5, and may be: a whole number of milliseconds from 0 to 1000"],
    ['{"queue_wait_s": 0}', "queue_wait_s is 0, and may be: a number of seconds above 0, up to 3600"],
    ['{"default_norm_scale": 0}', "default_norm_scale is 0, and may be: a whole number from 1 to 1000000"],
    ['{"default_space": "pixels"}', 'default_space is "pixels", and may be'],
    ['{"exec_timeout_s": "60"}', 'exec_timeout_s is "60", and may be: a number of seconds above 0, up to 3600'],
    ['{"data_paths": ["../x"]}', "data_paths.0 is"],
    ['{"taphold_ms": 5}', 'there is no setting "taphold_ms", did you mean "tap_hold_ms"?'],
  ])("%s is refused, naming the key and what it may be", (variable, message) => {
    const error = refused(variable);
    expect(error.message).toContain(`${SETTINGS_VARIABLE}: ${message}`);
    expect(error.hint).toContain("queue_wait_s");
  });

  it("that env.toml has wrong are said to be there", () => {
    expect(refused(undefined, { layout: 3 }).message).toContain("[settings]: layout is 3");
  });

  it("that are no JSON object are refused with an example", () => {
    for (const variable of ["queue_wait_s=5", "[1]", "null", "7"]) {
      expect(refused(variable).hint).toContain('{"queue_wait_s": 10}');
    }
  });
});
