import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";

/** What the closing line counts. `failed` is at least 1 whenever the run must not pass. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** How a test or a suite says in its name why it is skipped, as in `test.skipIf(…)("… (skipped: needs arm64)")`. */
const DECLARED_IN_NAME = /skipped: \S/;

/**
 * Prints `N passed, N failed` (and `, N skipped`) as the very last line of a run, and sees to it that what did not prove
 * anything counts as a failure: no test at all, a file that could not be loaded, a hook that threw, an error outside of every
 * test, a skip that declares no reason. A reason is the note given to `context.skip("reason")`, or `skipped: reason` in the
 * name of the test or of a suite around it.
 */
export class ClosingLineReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  #ended = false;
  #filtered = false;

  onInit(vitest: Vitest): void {
    this.#filtered = vitest.config.testNamePattern !== undefined;
    // At exit, so that nothing that the runner still has to say comes after it.
    process.once("exit", (code) => this.#close(code));
  }

  onTestRunStart(): void {
    this.#ended = false;
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>): void {
    const problems: string[] = [];
    const counts: Counts = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) countModule(module, counts, problems, this.#filtered);
    if (counts.passed + counts.failed === 0) {
      counts.failed = 1;
      problems.push("no test was executed");
    }
    for (const problem of problems) console.error(`FAIL  ${problem}`);
    if (counts.failed > 0) process.exitCode = 1;
    this.#counts = counts;
    this.#ended = true;
  }

  #close(code: number): void {
    const { passed, skipped } = this.#counts;
    // A run that broke off before its end, or that exits non-zero for a reason not seen here, has failed.
    const failed = Math.max(this.#counts.failed, code !== 0 || !this.#ended ? 1 : 0);
    if (failed > 0) process.exitCode = code || 1;
    process.stdout.write(closingLine({ passed, failed, skipped }));
  }
}

export function closingLine(counts: Counts): string {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  return `\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`;
}

function countModule(module: TestModule, counts: Counts, problems: string[], filtered: boolean): void {
  const failedBefore = counts.failed;
  const broken: Array<TestModule | TestSuite> = [module, ...module.children.allSuites()].filter(
    (suite) => suite.errors().length > 0,
  );
  counts.failed += broken.length;
  for (const test of module.children.allTests()) {
    const result = test.result();
    if (result.state === "passed") counts.passed += 1;
    else if (result.state === "failed") counts.failed += 1;
    else if (result.state === "pending") {
      counts.failed += 1;
      problems.push(`never finished: ${nameOf(test)}`);
    } else if (filtered || isUnder(test, broken) || isDeclared(test, result.note)) counts.skipped += 1;
    else {
      counts.failed += 1;
      problems.push(`skipped without a reason: ${nameOf(test)}`);
    }
  }
  if (module.state() === "failed" && counts.failed === failedBefore) counts.failed += 1;
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}

/** Whether a failed hook of a suite around the test is why it didn't run: that suite's failure is counted already. */
function isUnder(test: TestCase, broken: ReadonlyArray<TestModule | TestSuite>): boolean {
  for (let suite: TestSuite | TestModule | undefined = test.parent; suite; suite = parentOf(suite)) {
    if (broken.includes(suite)) return true;
  }
  return false;
}

function parentOf(suite: TestSuite | TestModule): TestSuite | TestModule | undefined {
  return suite.type === "suite" ? suite.parent : undefined;
}

function isDeclared(test: TestCase, note: string | undefined): boolean {
  return (note !== undefined && note.trim() !== "") || DECLARED_IN_NAME.test(test.fullName);
}
