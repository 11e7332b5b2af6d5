import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Turns, Wakefulness } from "../../../src/mcp/wakefulness.js";

let clock: number;
/** What is due in the loop's next turn. */
let due: (() => void)[];
beforeEach(() => {
  [clock, due] = [1, []];
  vi.spyOn(performance, "now").mockImplementation(() => clock);
  vi.stubGlobal("setImmediate", (run: () => void) => void due.push(run));
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function turn(): void {
  for (const run of due.splice(0)) run();
}

/** Milliseconds go by, in turns of a hundredth. */
function pass(ms: number): void {
  const end = clock + ms;
  for (; clock < end; clock += 0.01) if (due.length > 0) turn();
  clock = end;
}

/** Calls that are answered after `ms`, each asked `pause` after the last one's answer. */
function calls(turns: Turns, count: number, { ms = 0.05, pause = 0.05 } = {}): void {
  for (let call = 0; call < count; call += 1) {
    turns.asked(1);
    pass(ms);
    turns.answered();
    pass(pause);
  }
}

/** Whether the loop, after this turn, has something to do in the next one, so that it doesn't sleep. */
function awake(): boolean {
  turn();
  return due.length > 0;
}

describe("the event loop", () => {
  it("stays awake for an answer, and for the next request, once these have been short", () => {
    const turns = new Turns(new Wakefulness(true));
    turns.asked(1);
    expect(awake()).toBe(false);
    turns.answered();
    expect(awake()).toBe(false);
    calls(turns, 40);
    turns.asked(1);
    pass(0.05);
    expect(awake()).toBe(true);
    turns.answered();
    pass(0.05);
    expect(awake()).toBe(true);
  });

  it("falls asleep over one that takes much longer than usual", () => {
    const turns = new Turns(new Wakefulness(true));
    calls(turns, 40);
    turns.asked(1);
    expect(awake()).toBe(true);
    pass(0.5);
    expect(awake()).toBe(false);
    turns.answered();
    pass(1);
    expect(awake()).toBe(false);
  });

  it("doesn't stay awake where callers or tools take their time, and does again when they no longer do", () => {
    const turns = new Turns(new Wakefulness(true));
    calls(turns, 40, { ms: 5, pause: 1_000 });
    turns.asked(1);
    expect(awake()).toBe(false);
    turns.answered();
    expect(awake()).toBe(false);
    calls(turns, 40);
    turns.asked(1);
    expect(awake()).toBe(true);
  });

  it("sleeps while several requests are in the works, of one session or of several", () => {
    const loop = new Wakefulness(true);
    const [one, other] = [new Turns(loop), new Turns(loop)];
    calls(one, 40);
    calls(other, 40);
    one.asked(1);
    other.asked(1);
    expect(awake()).toBe(false);
    one.answered();
    expect(awake()).toBe(false);
    other.answered();
    pass(1);
    one.asked(2);
    expect(awake()).toBe(false);
  });

  it("never stays awake on a single processor", () => {
    const turns = new Turns(new Wakefulness(false));
    calls(turns, 40);
    turns.asked(1);
    expect(awake()).toBe(false);
  });
});
