import { describe, expect, it } from "vitest";
import { InputQueue, type InputTurn } from "../../../src/computer/input-queue.js";
import { Caller } from "../../../src/environment/caller.js";
import { until } from "../../harness/until.js";

const never = () => new AbortController().signal;

/** A turn that is held until it is let go of. */
function hold(queue: InputQueue, caller = new Caller("holder")) {
  let letGo = () => {};
  let turn: InputTurn | undefined;
  const done = queue.turn(caller, never(), 1_000, (own) => {
    turn = own;
    return new Promise<void>((resolve) => {
      letGo = resolve;
    });
  });
  return { done, turn: () => turn as InputTurn, letGo: () => letGo() };
}

describe("the input queue", () => {
  it("runs 50 calls of five callers one at a time, in the order in which they came", async () => {
    const queue = new InputQueue();
    const callers = Array.from({ length: 5 }, (_, index) => new Caller(`c${index}`));
    const order: number[] = [];
    let running = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        queue.turn(callers[index % 5] as Caller, never(), 5_000, async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setImmediate(resolve));
          order.push(index);
          running -= 1;
        }),
      ),
    );
    expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
    expect([most, queue.busy]).toEqual([1, false]);
  });

  it("lets no call slip in between one that ends and the first that waits", async () => {
    const queue = new InputQueue();
    const order: string[] = [];
    let running = 0;
    const run = (name: string) =>
      queue.turn(new Caller(name), never(), 5_000, async () => {
        running += 1;
        order.push(`${name} ${running}`);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      });
    const holder = hold(queue);
    const waiting = run("waiting");
    holder.letGo();
    const newcomers: Promise<void>[] = [];
    for (let n = 0; n < 12; n += 1) {
      newcomers.push(run("new"));
      await Promise.resolve();
    }
    await Promise.all([waiting, ...newcomers]);
    expect(order).toEqual(["waiting 1", ...newcomers.map(() => "new 1")]);
  });

  it("refuses a wait that takes too long with input_busy and applied no, and isn't left held by it", async () => {
    const queue = new InputQueue();
    const holder = hold(queue);
    const late = queue.turn(new Caller("late"), never(), 20, async () => "ran");
    await expect(late).rejects.toMatchObject({ code: "input_busy", applied: "no", retryable: true });
    expect(queue.waiting).toBe(0);
    holder.letGo();
    await holder.done;
    expect(queue.busy).toBe(false);
  });

  it("is left free by a wait that was cancelled, also by one cancelled in the moment of its turn", async () => {
    const queue = new InputQueue();
    const holder = hold(queue);
    const cancelled = new AbortController();
    const given = queue.turn(new Caller("gone"), cancelled.signal, 5_000, async () => "ran");
    const next = queue.turn(new Caller("next"), never(), 5_000, async () => "ran");
    cancelled.abort();
    await expect(given).rejects.toMatchObject({ code: "timeout", applied: "no" });
    holder.letGo();
    await expect(next).resolves.toBe("ran");

    const second = hold(queue);
    const atOnce = new AbortController();
    const tooLate = queue.turn(new Caller("gone"), atOnce.signal, 5_000, async () => "ran");
    second.letGo();
    await second.done;
    atOnce.abort();
    await tooLate.catch(() => {});
    await expect(queue.turn(new Caller("after"), never(), 100, async () => "ran")).resolves.toBe("ran");
    expect(queue.busy).toBe(false);
  });

  it("lets no more wait than its bound", async () => {
    const queue = new InputQueue(2);
    const holder = hold(queue);
    const waiting = [1, 2].map((n) => queue.turn(new Caller(`w${n}`), never(), 5_000, async () => n));
    const refused = queue.turn(new Caller("third"), never(), 5_000, async () => 3);
    await expect(refused).rejects.toMatchObject({ code: "limit_exceeded", applied: "no" });
    holder.letGo();
    await expect(Promise.all(waiting)).resolves.toEqual([1, 2]);
  });

  it("stays held as long as a turn outlasts its call, and counts its input only then", async () => {
    const queue = new InputQueue();
    const caller = new Caller("typing");
    const before = queue.snapshot();
    let daemonAnswers = () => {};
    const daemon = new Promise<void>((resolve) => {
      daemonAnswers = resolve;
    });
    const call = queue.turn(caller, never(), 100, async (turn) => {
      turn.outlast(daemon);
      turn.delivered();
      throw new Error("cancelled");
    });
    await expect(call).rejects.toThrow("cancelled");
    const other = new Caller("other");
    let ran = false;
    const next = queue.turn(other, never(), 5_000, async () => {
      ran = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([ran, queue.othersSince(before, other)]).toEqual([false, 0]);
    daemonAnswers();
    await next;
    expect([ran, queue.othersSince(before, other), queue.othersSince(before, caller)]).toEqual([true, 1, 0]);
  });

  it("is free again when what outlasted the call fails", async () => {
    const queue = new InputQueue();
    await queue.turn(new Caller("a"), never(), 100, async (turn) => turn.outlast(Promise.reject(new Error("died"))));
    await until(() => !queue.busy);
  });

  it("counts the input of others since a moment, whoever asks", async () => {
    const queue = new InputQueue();
    const [a, b, c] = [new Caller("a"), new Caller("b"), new Caller("c")];
    queue.count(a);
    const then = queue.snapshot();
    queue.count(a);
    queue.count(b);
    queue.count(b);
    const later = queue.snapshot();
    queue.count(c);
    expect([a, b, c].map((caller) => queue.othersSince(then, caller))).toEqual([3, 2, 3]);
    expect([a, b, c].map((caller) => queue.othersSince(later, caller))).toEqual([1, 1, 0]);
  });

  it("keeps no count of a caller that has ended", async () => {
    const queue = new InputQueue();
    for (let n = 0; n < 1_000; n += 1) {
      const caller = new Caller(`c${n}`);
      queue.count(caller);
      await caller.end();
      queue.count(caller);
    }
    expect(queue.snapshot()).toMatchObject({ total: 2_000, byCaller: new Map() });
  });

  it("gives the computer's own turns their place too, without a count", async () => {
    const queue = new InputQueue();
    const holder = hold(queue);
    const order: string[] = [];
    const own = queue.ownTurn(async () => void order.push("own"));
    const next = queue.turn(new Caller("next"), never(), 5_000, async () => void order.push("next"));
    holder.letGo();
    await Promise.all([own, next]);
    expect([order, queue.snapshot().total]).toEqual([["own", "next"], 0]);
  });
});
