/**
 * Sets this clone up: `node scripts/bootstrap.mjs LEVEL [-- ARGUMENTS OF up]`. Needs nothing but Node 18, says on standard
 * error what takes long, and is silent and quick when there is nothing to do. `run.sh` calls it before every command.
 */
import { writeFileSync } from "node:fs";
import { buildStep } from "./bootstrap/build.mjs";
import { endOnSignals } from "./bootstrap/command.mjs";
import { dependenciesStep } from "./bootstrap/dependencies.mjs";
import { driverStep } from "./bootstrap/driver.mjs";
import { envChoice, flagOf } from "./bootstrap/env-choice.mjs";
import { takeLock } from "./bootstrap/lock.mjs";
import { nodeStep } from "./bootstrap/node.mjs";
import { packagesStep } from "./bootstrap/packages.mjs";
import { logFile, root } from "./bootstrap/places.mjs";
import { Problem, Stopped } from "./bootstrap/problem.mjs";
import { red, StepLine, say } from "./bootstrap/progress.mjs";
import { sessionUserStep } from "./bootstrap/session-user.mjs";

/** What each level of set-up consists of, in order. A step is looked at again right before it runs; what it returns is said after it. */
const LEVELS = {
  /** For what works on sources: format, lint, types, unit tests. */
  tools: () => [nodeStep, dependenciesStep],
  /** For the command line as a client. */
  cli: () => [nodeStep, dependenciesStep, buildStep],
  /** For the command line's own work with drivers. */
  install: () => [nodeStep, dependenciesStep, packagesStep(["run"]), buildStep],
  /** For `run`, which brings the driver itself. */
  record: (args) => [
    nodeStep,
    dependenciesStep,
    packagesStep(["run"]),
    sessionUserStep(flagOf("--user", args)),
    buildStep,
  ],
  /** For `up` and `put`. */
  run(args) {
    const { user, driver } = envChoice(args);
    return [
      nodeStep,
      dependenciesStep,
      packagesStep(["run"]),
      sessionUserStep(user),
      buildStep,
      driverStep(driver === "cua-driver"),
    ];
  },
  /** For all tests, and the benchmark. */
  test: () => [
    nodeStep,
    dependenciesStep,
    packagesStep(["run", "test"]),
    sessionUserStep(undefined),
    buildStep,
    driverStep(true),
  ],
};

async function main([level, ...rest]) {
  const stepsOf = Object.hasOwn(LEVELS, level ?? "") ? LEVELS[level] : undefined;
  if (!stepsOf)
    throw new Problem(`no such level of set-up: ${level}`, { advice: `One of: ${Object.keys(LEVELS).join(", ")}.` });
  const steps = stepsOf(rest[0] === "--" ? rest.slice(1) : rest);
  const needed = await Promise.all(steps.map((step) => step.needed()));
  if (!needed.includes(true)) return;

  endOnSignals();
  const lock = await takeLock();
  writeFileSync(logFile, "");
  for (const step of steps) {
    if (await step.needed()) await runStep(step, lock);
  }
}

async function runStep(step, lock) {
  const line = new StepLine(step.title);
  let note;
  try {
    note = await step.run({ lock, line });
  } catch (error) {
    line.broken(error instanceof Stopped ? "stopped" : "failed");
    throw error;
  }
  line.done();
  if (note) say(note);
}

function explain(error) {
  if (error instanceof Stopped) {
    say(error.message);
    return;
  }
  const { tail = [], advice = adviceFor(error) } = error;
  for (const text of tail) say(`  ${text}`);
  say(red(`The set-up failed: ${error.message}`));
  if (advice) say(advice);
  if (tail.length > 0) say(`All of its output: ${logFile}`);
}

function adviceFor({ code }) {
  if (code === "ENOSPC") return "Make room on the disk, then run the same command again.";
  if (["EACCES", "EPERM", "EROFS"].includes(code)) {
    return `Run it as the user that owns ${root}, or give this user the right to write there.`;
  }
  return undefined;
}

try {
  await main(process.argv.slice(2));
  process.exit(0);
} catch (error) {
  explain(error);
  process.exit(error instanceof Problem ? error.exitCode : 1);
}
