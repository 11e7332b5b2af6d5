import { describe, expect, it } from "vitest";
import { PATIENT, type RetryPolicy, withRetries } from "../../../src/stores/retry.js";

const QUICK: RetryPolicy = { deadline: 2_000, attempt: 50, attempts: 4, firstWait: 4, longestWait: 10 };

describe("work that is tried again", () => {
  it("ends with the first try that succeeds", async () => {
    let tries = 0;
    const answer = await withRetries(
      async () => {
        tries += 1;
        if (tries < 3) throw new Error("not yet");
        return tries;
      },
      () => true,
      QUICK,
    );
    expect(answer).toBe(3);
  });

  it("ends with what the last try threw, after as many tries as allowed", async () => {
    let tries = 0;
    const failing = withRetries(
      async () => {
        tries += 1;
        throw new Error(`try ${tries}`);
      },
      () => true,
      QUICK,
    );
    await expect(failing).rejects.toThrow("try 4");
  });

  it("is tried once where what was thrown can't pass by itself", async () => {
    let tries = 0;
    const failing = withRetries(
      async () => {
        tries += 1;
        throw new Error("no right");
      },
      () => false,
      QUICK,
    );
    await expect(failing).rejects.toThrow("no right");
    expect(tries).toBe(1);
  });

  it("has its signal aborted when a try takes too long", async () => {
    let tries = 0;
    const hanging = withRetries(
      (signal) => {
        tries += 1;
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
      () => true,
      QUICK,
    );
    await expect(hanging).rejects.toThrow(/timeout/);
    expect(tries).toBe(4);
  });

  it("ends within its deadline, however many tries are left", async () => {
    const started = performance.now();
    const failing = withRetries(
      async () => {
        throw new Error("again");
      },
      () => true,
      { ...QUICK, attempts: 1_000, deadline: 100 },
    );
    await expect(failing).rejects.toThrow("again");
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("waits longer each time, by chance between half and all of it, six seconds in all at least", async () => {
    const full = Array.from({ length: PATIENT.attempts - 1 }, (_, index) =>
      Math.min(PATIENT.longestWait, PATIENT.firstWait * 2 ** index),
    );
    expect(full.reduce((sum, each) => sum + each) / 2).toBeGreaterThanOrEqual(6_000);
    const waits = new Set<number>();
    let last = performance.now();
    const failing = withRetries(
      async () => {
        waits.add(performance.now() - last);
        last = performance.now();
        throw new Error("again");
      },
      () => true,
      { ...QUICK, firstWait: 20, longestWait: 40 },
    );
    await expect(failing).rejects.toThrow("again");
    for (const wait of [...waits].slice(1)) expect(wait).toBeGreaterThanOrEqual(9);
  });
});
