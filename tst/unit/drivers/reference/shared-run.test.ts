import { describe, expect, it } from "vitest";
import { SharedRun } from "../../../../drivers/reference/shared-run.js";

/** A run that ends when the test says so. */
function stepwise() {
  const runs: PromiseWithResolvers<number>[] = [];
  const shared = new SharedRun(() => {
    const run = Promise.withResolvers<number>();
    runs.push(run);
    return run.promise;
  });
  return { runs, shared };
}

describe("a shared run", () => {
  it("is the only one, also where who had the last one asks again before the next one has begun", async () => {
    let [running, most, runs] = [0, 0, 0];
    const shared = new SharedRun(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      runs += 1;
      return runs;
    });
    const first = shared.ask();
    // Registered before the next run is, so that it goes on before that begins.
    const again = first.then(() => shared.ask());
    const next = shared.ask();
    expect(await Promise.all([first, next, again])).toEqual([1, 2, 2]);
    expect(most).toBe(1);
  });

  it("is never one that began before it was asked for, and is one for all that asked meanwhile", async () => {
    const { runs, shared } = stepwise();
    const first = shared.ask();
    const [second, third] = [shared.ask(), shared.ask()];
    expect(runs).toHaveLength(1);
    runs[0]?.resolve(1);
    expect(await first).toBe(1);
    await Promise.resolve();
    expect(runs).toHaveLength(2);
    const fourth = shared.ask();
    runs[1]?.resolve(2);
    expect(await Promise.all([second, third])).toEqual([2, 2]);
    runs[2]?.resolve(3);
    expect(await fourth).toBe(3);
    expect(runs).toHaveLength(3);
  });

  it("that fails fails for those who asked for it alone", async () => {
    const { runs, shared } = stepwise();
    const first = shared.ask();
    const second = shared.ask();
    runs[0]?.reject(new Error("no"));
    await expect(first).rejects.toThrow("no");
    await Promise.resolve();
    runs[1]?.resolve(2);
    expect(await second).toBe(2);
    const third = shared.ask();
    runs[2]?.resolve(3);
    expect(await third).toBe(3);
  });
});
