import { RemoteError } from "../client/remote-error.js";
import { messageOf } from "../errors.js";
import { type BasicCheck, type Check, Difference, Finding, NotApplicable } from "./check.js";
import { CHECKS } from "./checks/list.js";
import { Driver } from "./driver.js";
import { Board, StagedFixture } from "./fixture/board.js";
import { type CheckResult, type Level, type ProbeReport, resultOf, verdicts } from "./report.js";

/** How long a check may take where it doesn't say, in milliseconds. */
const CHECK_MS = 20_000;
const CALL_MS = 30_000;
const SETTLE_MS = 5_000;

export interface ProbeOptions {
  readonly level: Level;
  /** A bearer token of scope framework. */
  readonly token?: string;
  /** How long one call may take, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /** How long an effect may take to reach the fixture, in milliseconds. Default 5,000. */
  readonly settleMs?: number;
  /** Ends the probe: what was staged is taken away, and then its reason is thrown. */
  readonly signal?: AbortSignal;
  readonly onResult?: (result: CheckResult) => void;
  /** Default: all that there are. */
  readonly checks?: readonly Check[];
}

/**
 * Holds the driver at `url` to computer/v1. What a check finds is in the report; thrown is what keeps the probe from beginning
 * (a RemoteError, or what MCP's client throws) and the reason of an aborted signal.
 */
export async function runProbe(url: string, options: ProbeOptions): Promise<ProbeReport> {
  const { level, token, timeoutMs = CALL_MS, settleMs = SETTLE_MS } = options;
  const { signal = new AbortController().signal, checks = CHECKS } = options;
  const started = new Date();
  const client = { timeoutMs, ...(token === undefined ? {} : { token }) };
  const driver = await Driver.at(url, client, signal);
  // A server without MCP is none that could be probed.
  await driver.session();
  await driver.closeSessions();
  const results: CheckResult[] = [];
  const record = (result: CheckResult) => {
    results.push(result);
    options.onResult?.(result);
  };
  await runBasic(driver, checks, record);
  if (level === "full") await runFull(driver, checks, settleMs, record);
  return {
    level,
    driver: driver.card.name,
    passed: results.every(({ status }) => status !== "failed"),
    checks: results,
    extensions: verdicts(driver.declared, results),
    url,
    started_at: started.toISOString(),
    ms: Date.now() - started.getTime(),
  };
}

async function runBasic(driver: Driver, all: readonly Check[], record: (result: CheckResult) => void): Promise<void> {
  const checks = all.filter((check) => check.level === "basic");
  const start = (check: BasicCheck) => one(check, driver, (own) => check.run(own));
  const aside = new Map(checks.filter((check) => check.aside).map((check) => [check, start(check)]));
  try {
    for (const check of checks) record(await (aside.get(check) ?? start(check)));
  } finally {
    await Promise.allSettled(aside.values());
  }
}

async function runFull(
  driver: Driver,
  all: readonly Check[],
  settleMs: number,
  record: (result: CheckResult) => void,
): Promise<void> {
  const checks = all.filter((check) => check.level === "full");
  if (checks.length === 0) return;
  const unverified = (why: string) => {
    for (const check of checks) record(resultOf(check, "unverified", why, 0));
  };
  if (driver.lacksForFixture !== undefined) {
    unverified(driver.lacksForFixture);
    return;
  }
  let staged: Awaited<ReturnType<typeof StagedFixture.stage>>;
  try {
    staged = await StagedFixture.stage(driver);
  } catch (thrown) {
    driver.signal.throwIfAborted();
    unverified(`the fixture couldn't be staged: ${described(thrown)}`);
    return;
  }
  const { fixture, layout } = staged;
  try {
    for (const check of checks) {
      const run = async (own: Driver) => check.run(new Board(own, await own.session(), fixture.path, layout, settleMs));
      record(await one(check, driver, run));
    }
  } finally {
    const left = await fixture.unstage();
    if (left !== undefined) process.emitWarning(`the probe's fixture is still on the computer: ${left}`);
    await driver.closeSessions();
  }
}

/** Runs one check within its deadline. Throws the reason of an aborted probe, and nothing else. */
async function one(check: Check, driver: Driver, run: (driver: Driver) => Promise<void>): Promise<CheckResult> {
  driver.signal.throwIfAborted();
  const { needs = [], deadlineMs = CHECK_MS } = check;
  const lacking = needs.filter((uri) => !driver.declares(uri));
  const why = lacking.length > 0 ? `the card doesn't declare ${lacking.join(", ")}` : check.unless?.(driver);
  if (why !== undefined) return resultOf(check, "not_applicable", why, 0);
  if (check.unverified !== undefined) return resultOf(check, "unverified", check.unverified, 0);
  const started = performance.now();
  const ms = () => performance.now() - started;
  const over = new AbortController();
  const own = driver.during(AbortSignal.any([driver.signal, over.signal]));
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Finding(`it wasn't over after ${deadlineMs / 1000} s`));
    over.abort();
  }, deadlineMs);
  const interrupted = () => late.reject(driver.signal.reason);
  driver.signal.addEventListener("abort", interrupted, { once: true });
  const work = run(own);
  try {
    await Promise.race([work, late.promise]);
    return resultOf(check, "passed", "", ms());
  } catch (thrown) {
    driver.signal.throwIfAborted();
    if (thrown instanceof NotApplicable) return resultOf(check, "not_applicable", thrown.message, ms());
    if (thrown instanceof Difference) return resultOf(check, "not_applicable", thrown.message, ms(), true);
    return resultOf(check, "failed", described(thrown), ms());
  } finally {
    clearTimeout(timer);
    driver.signal.removeEventListener("abort", interrupted);
    over.abort();
    await own.closeSessions();
    // What a check puts back it puts back before the next one begins; that has a deadline of its own.
    await work.catch(() => {});
  }
}

function described(thrown: unknown): string {
  if (thrown instanceof RemoteError) return `${thrown.code}: ${thrown.message}`;
  if (thrown instanceof Finding) return thrown.message;
  const cause = (thrown as Error).cause;
  const why = cause === undefined ? "" : ` (${messageOf(cause)}, ${(cause as NodeJS.ErrnoException).code})`;
  return `${(thrown as Error).name}: ${messageOf(thrown)}${why}`;
}
