import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Caller } from "../../environment/caller.js";
import { defineTool } from "../../environment/define-tool.js";
import type { ServedTool } from "../../environment/served-tool.js";
import { AgentEnvError } from "../../errors.js";
import { type Effect, InputResult } from "../../protocol/computer.js";
import { act, type CallDelivery } from "../act.js";
import type { Computer } from "../computer.js";
import { chordOf } from "../keys.js";
import type { KeyboardGroup } from "../operations.js";
import { ACTS, keys, optionalKeys, optionalWholeNumber, screenshot } from "./arguments.js";
import { named } from "./key.js";

/** The tools of the keyboard group. */
export function keyboardTools(computer: Computer, keyboard: KeyboardGroup): ServedTool[] {
  return [downTool(computer, keyboard), upTool(computer, keyboard)];
}

function downTool(computer: Computer, keyboard: KeyboardGroup): ServedTool {
  return defineTool(
    {
      name: "computer_keyboard_down",
      description:
        "Press keys and keep them down, also during your later calls. They are released after a while by themselves, and " +
        "when your session ends.",
      input: z.strictObject({
        keys: keys("W3C key values, pressed in this order"),
        hold_ms: optionalWholeNumber(
          0,
          Number.MAX_SAFE_INTEGER,
          "Release them after so many milliseconds, within this call; left out, computer_keyboard_up does",
        ),
        screenshot,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const chord = chordOf(args.keys, computer.driver.keys);
      const holdMs = args.hold_ms;
      const longest = computer.settings.max_hold_ms;
      if (holdMs !== null && holdMs > longest) {
        throw new AgentEnvError("invalid_argument", `hold_ms is from 0 to ${longest} here, not ${holdMs}`);
      }
      await computer.ready.ensure(context.signal);
      const text = chord.map(named).join(" + ");
      return act(computer, context, {
        planned: { kind: "hold", holdMs: holdMs ?? 0 },
        frame: computer.frames.latest(context.caller),
        mapped: false,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          const effect = await press(chord, signal, delivery);
          if (holdMs !== null) await releaseAfter(chord, holdMs, signal, delivery);
          return effect;
        },
        summary: () => (holdMs === null ? `Holding ${text} down` : `Held ${text} down for ${holdMs} ms`),
      });
    },
  );

  /** From the press on the keys count as held, so that they are let go of whatever happens; at once where it fails. */
  async function press(
    chord: readonly string[],
    signal: AbortSignal,
    delivery: CallDelivery,
  ): Promise<Effect | undefined> {
    try {
      const effect = await keyboard.keyDown(chord, signal, delivery);
      computer.keys.add(delivery.caller, chord);
      return effect ?? undefined;
    } catch (thrown) {
      if (delivery.mayHaveSent(thrown)) delivery.outlast(computer.keys.takeBack(delivery.caller, chord));
      throw thrown;
    }
  }

  async function releaseAfter(
    chord: readonly string[],
    holdMs: number,
    signal: AbortSignal,
    delivery: CallDelivery,
  ): Promise<void> {
    delivery.sent();
    try {
      await sleep(holdMs, undefined, { signal });
    } finally {
      // Also when the call is given up meanwhile, so not with its signal.
      const up = computer.keys.releasable(delivery.caller, [...chord].reverse());
      if (up.length > 0) await keyboard.keyUp(up, new AbortController().signal, delivery);
      computer.keys.removeOwn(delivery.caller, chord);
    }
  }
}

function upTool(computer: Computer, keyboard: KeyboardGroup): ServedTool {
  return defineTool(
    {
      name: "computer_keyboard_up",
      description: "Release keys that you hold down.",
      input: z.strictObject({
        keys: optionalKeys("W3C key values, released in this order; left out, all that you hold"),
        screenshot,
      }),
      output: InputResult,
      annotations: ACTS,
    },
    async (args, context) => {
      const { caller } = context;
      const wanted = args.keys === null ? undefined : chordOf(args.keys, computer.driver.keys);
      await computer.ready.ensure(context.signal);
      if (wanted === undefined && computer.keys.of(caller).length === 0) throw holdingNone();
      let released: readonly string[] = [];
      return act(computer, context, {
        planned: { kind: "hold", holdMs: 0 },
        frame: computer.frames.latest(caller),
        mapped: false,
        screenshot: args.screenshot,
        send: async (signal, delivery) => {
          released = wanted ?? [...computer.keys.of(caller)].reverse();
          // They may have been released while the call waited for its turn.
          if (released.length === 0) throw holdingNone();
          return release(released, caller, signal, delivery);
        },
        summary: () => `Released ${released.map(named).join(" + ")}`,
      });
    },
  );

  /** What another caller holds too stays down, and is said. */
  async function release(
    chord: readonly string[],
    caller: Caller,
    signal: AbortSignal,
    delivery: CallDelivery,
  ): Promise<Effect | undefined> {
    const up = computer.keys.releasable(caller, chord);
    const own = computer.keys.of(caller);
    if (up.length === 0 && !chord.some((key) => own.includes(key))) {
      throw new AgentEnvError("invalid_argument", "another caller holds these keys, and you don't");
    }
    const effect = up.length === 0 ? undefined : await keyboard.keyUp(up, signal, delivery);
    computer.keys.removeOwn(caller, chord);
    if (up.length === chord.length) return effect ?? undefined;
    const kept = chord.filter((key) => !up.includes(key));
    return { ...effect, detail: `another caller still holds ${kept.join(", ")}` };
  }
}

function holdingNone(): AgentEnvError {
  return new AgentEnvError("invalid_argument", "you hold no keys", { hint: "computer_keyboard_down holds keys" });
}
