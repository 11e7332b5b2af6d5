import { expect, test } from "vitest";
import { deadlinesOf, readSettings } from "../../../../drivers/cua-driver/settings.js";
import { SetupError } from "../../../../src/errors.js";

function refused(given: Record<string, unknown>): SetupError {
  try {
    readSettings(given);
  } catch (thrown) {
    if (thrown instanceof SetupError) return thrown;
    throw thrown;
  }
  throw new Error("it was not refused");
}

test("every call has a deadline below the 120 s of a client's transport, a capture a shorter one", () => {
  const settings = readSettings({});
  expect(deadlinesOf(settings)).toEqual({ call: 110_000, capture: 15_000, metadata: 2_000, control: 4_000 });
  expect(settings.needs_accessibility).toBe(false);
  expect(deadlinesOf(readSettings({ call_deadline_s: 0.5 })).call).toBe(500);
});

test.each([
  [{ call_deadline_s: 111 }, "call_deadline_s is 111, and may be: a number of seconds above 0, up to 110"],
  [{ capture_deadline_s: 0 }, "capture_deadline_s is 0, and may be: a number of seconds above 0, up to 110"],
  [{ tool_deadlines_s: { click: "long" } }, 'tool_deadlines_s.click is "long", and may be: a number of seconds'],
  [{ needs_accessibility: 1 }, "needs_accessibility is 1, and may be: true or false"],
  [{ cal_deadline_s: 1 }, 'cua-driver has no setting "cal_deadline_s", did you mean "call_deadline_s"?'],
])("%j is refused, naming the key and what it may be", (given, message) => {
  const error = refused(given);
  expect(error.message).toContain(`[settings.driver]: ${message}`);
  expect(error.hint).toContain("capture_deadline_s");
});
