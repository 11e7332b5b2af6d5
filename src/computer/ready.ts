import { AgentEnvError, messageOf } from "../errors.js";
import type { ReadyCheck } from "../protocol/computer.js";
import { cancelled, Deadline, unlessAborted } from "./deadline.js";

/** How long one check may take. */
const CHECK_MS = 15_000;

/** One step of the checks. What it throws is a check that failed, under its name. */
export interface CheckStep {
  readonly name: string;
  /** Whether it is run again once all have passed, for what can go away. Else its first answers stand. */
  readonly again: boolean;
  run(signal: AbortSignal): Promise<ReadyCheck[]>;
}

/**
 * Whether the computer can be used. Once all checks have passed it counts as usable; until then each call runs them itself,
 * together with the calls that run them already. From then on only those are run that look at what can go away.
 */
export class Ready {
  #passed = false;
  readonly #stand = new Map<CheckStep, ReadyCheck[]>();
  #running: Promise<ReadyCheck[]> | undefined;

  constructor(
    private readonly steps: readonly CheckStep[],
    private readonly checkMs = CHECK_MS,
  ) {}

  get passed(): boolean {
    return this.#passed;
  }

  /** Returns once the checks have passed; throws `device_unavailable`, naming those that fail. */
  async ensure(signal: AbortSignal): Promise<void> {
    if (this.#passed) return;
    if (signal.aborted) throw cancelled();
    const checks = await unlessAborted(this.together(), signal).catch(() => Promise.reject(cancelled()));
    const failed = checks.filter((check) => !check.ok);
    if (failed.length === 0) return;
    throw new AgentEnvError(
      "device_unavailable",
      `the computer isn't ready: ${failed.map((check) => `${check.name}: ${check.detail}`).join("; ")}`,
      { hint: "wait a moment and call again; computer-ready says what it waits for" },
    );
  }

  /** Runs the checks, or waits for the run that goes on already. */
  together(): Promise<ReadyCheck[]> {
    this.#running ??= this.run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Runs the checks, side by side; never throws. A check that fails keeps none of the others. */
  async run(): Promise<ReadyCheck[]> {
    const checks = (await Promise.all(this.steps.map((step) => this.#check(step)))).flat();
    if (checks.every((check) => check.ok)) this.#passed = true;
    return checks;
  }

  async #check(step: CheckStep): Promise<ReadyCheck[]> {
    const standing = this.#passed && !step.again ? this.#stand.get(step) : undefined;
    if (standing !== undefined) return standing;
    using deadline = new Deadline(NEVER, this.checkMs);
    try {
      const checks = await deadline.bound(step.run(deadline.signal));
      if (!step.again) this.#stand.set(step, checks);
      return checks;
    } catch (thrown) {
      return [{ name: step.name, ok: false, detail: messageOf(thrown) }];
    }
  }
}

const NEVER = new AbortController().signal;
