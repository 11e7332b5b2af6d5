import { AgentEnvError, SetupError } from "../errors.js";
import { BUTTONS } from "../protocol/computer.js";
import { MAX_INPUT_MS } from "./deadline.js";
import type { ComputerDriver } from "./driver.js";
import { canonicalKey } from "./keys.js";
import type { ComputerSettings } from "./settings.js";

/** The bounds of a driver's numbers: the published protocol's, and what one call can wait for. */
const LEAST = {
  maxClickCount: 1,
  maxTextLength: 1,
  maxWaitMs: 60_000,
  maxDragPoints: 2,
  maxDurationMs: 0,
  maxKeyRepeat: 1,
  maxScrollAmount: 1,
} as const;

/** Throws a SetupError for features that a driver can't have, and for settings that its features don't allow. */
export function checkFeatures(driver: ComputerDriver, settings: ComputerSettings): void {
  const problems = [
    ...numberProblems(driver),
    ...buttonProblems(driver.buttons),
    ...keyProblems(driver),
    ...settingProblems(driver, settings),
  ];
  if (driver.displayModes.length > 0 !== (driver.groups.setsDisplay !== undefined)) {
    problems.push("displayModes and setDisplay come together or not at all");
  }
  if (problems.length > 0) throw new SetupError(`${driver.constructor.name}: ${problems.join("; ")}`);
}

function numberProblems(driver: ComputerDriver): string[] {
  const problems = Object.entries(LEAST)
    .filter(([name, least]) => {
      const value = driver[name as keyof typeof LEAST];
      return !Number.isSafeInteger(value) || value < least;
    })
    .map(([name, least]) => `${name} is a whole number of at least ${least}`);
  if (driver.maxWaitMs > MAX_INPUT_MS) problems.push(`maxWaitMs is at most ${MAX_INPUT_MS}`);
  return problems;
}

function buttonProblems(buttons: readonly string[]): string[] {
  const known: readonly string[] = BUTTONS;
  return buttons.includes("left") && buttons.every((button) => known.includes(button))
    ? []
    : [`buttons holds left, and others of ${BUTTONS.join(", ")}`];
}

function keyProblems({ keys }: ComputerDriver): string[] {
  if (keys === "all") return [];
  const wrong = keys.filter((key) => {
    try {
      return canonicalKey(key) !== key;
    } catch (thrown) {
      if (thrown instanceof AgentEnvError) return true;
      throw thrown;
    }
  });
  return wrong.length === 0 ? [] : [`keys are W3C key values in W3C case, and ${wrong.join(", ")} is none`];
}

function settingProblems(driver: ComputerDriver, settings: ComputerSettings): string[] {
  const problems: string[] = [];
  if (!driver.layouts.includes(settings.layout)) {
    problems.push(`the setting layout is "${settings.layout}", and may be ${driver.layouts.join(", ")}`);
  }
  if (settings.drag_duration_ms > driver.maxDurationMs) {
    problems.push(`the setting drag_duration_ms is ${settings.drag_duration_ms}, and at most ${driver.maxDurationMs}`);
  }
  return problems;
}
