import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds. */
export interface RetryPolicy {
  /** For everything together. */
  readonly deadline: number;
  /** For one try. */
  readonly attempt: number;
  readonly attempts: number;
  /** The first wait is about this long, each further one about twice as long as the one before. */
  readonly firstWait: number;
  readonly longestWait: number;
}

/** Outlives an outage of at least 6 s: the waits are 6.3 to 12.6 s together. */
export const PATIENT: RetryPolicy = {
  deadline: 120_000,
  attempt: 30_000,
  attempts: 7,
  firstWait: 200,
  longestWait: 10_000,
};

/**
 * Does `work`, and does it again after what `passes` says may pass by itself. Half of each wait is chance, so that many
 * who were turned away together don't come back together. Throws what the last try threw. Only for work that may be done
 * twice; the signal of a try is aborted when its time is up.
 */
export async function withRetries<T>(
  work: (signal: AbortSignal) => Promise<T>,
  passes: (thrown: unknown) => boolean,
  policy: RetryPolicy = PATIENT,
): Promise<T> {
  const end = performance.now() + policy.deadline;
  for (let tried = 1; ; tried += 1) {
    try {
      return await work(AbortSignal.timeout(Math.max(1, Math.ceil(Math.min(policy.attempt, end - performance.now())))));
    } catch (thrown) {
      const wait = Math.min(policy.longestWait, policy.firstWait * 2 ** (tried - 1)) * (0.5 + Math.random() / 2);
      if (tried >= policy.attempts || performance.now() + wait >= end || !passes(thrown)) throw thrown;
      await sleep(wait);
    }
  }
}
