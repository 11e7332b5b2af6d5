import type { Caller } from "../environment/caller.js";
import type { ToolContext } from "../environment/context.js";
import { AgentEnvError, messageOf } from "../errors.js";
import type { Effect, InputResult } from "../protocol/computer.js";
import type { ToolResult } from "../protocol/tool.js";
import type { Computer } from "./computer.js";
import { Deadline, MAX_INPUT_MS } from "./deadline.js";
import { checkCurrent, type Frame } from "./frames.js";
import type { InputTurn } from "./input-queue.js";
import type { Delivery, HeldKeys, PlannedInput } from "./operations.js";
import { answer, imageOf } from "./results.js";

/** One input call, its arguments checked and its points mapped. */
export interface InputCall {
  readonly planned: PlannedInput;
  /** The frame that the call names, or the caller's latest: others' input is counted from it. */
  readonly frame: Frame | undefined;
  /** Whether points were mapped from the frame, which then must still fit the display when the call has its turn. */
  readonly mapped: boolean;
  readonly screenshot: boolean;
  /** Sends the input, once the call has its turn. */
  send(signal: AbortSignal, delivery: CallDelivery): Promise<Effect | undefined> | Promise<void>;
  /** One line on what was done; asked after it was sent. */
  summary(): string;
}

const LOOK = "look at a screenshot before going on: nothing is sent again by itself";

/**
 * One input call from its turn to its result. What it throws says in `applied` whether the input happened: `no` for a refusal,
 * `unknown` once something may have been sent.
 */
export async function act(computer: Computer, context: ToolContext, call: InputCall): Promise<ToolResult> {
  const { caller } = context;
  const needsMs = checkDuration(computer, call.planned);
  using deadline = new Deadline(context.signal, computer.callDeadlineMs);
  // What waits so long that its input could no longer be answered in time is refused while nothing is sent.
  const waitMs = Math.max(0, Math.min(computer.settings.queue_wait_s * 1000, deadline.ms - needsMs));
  const { effect, others } = await computer.queue.turn(caller, context.signal, waitMs, async (turn) => {
    if (call.mapped && call.frame !== undefined) {
      checkCurrent(call.frame, await computer.display(deadline.signal));
    }
    return {
      others: call.frame === undefined ? 0 : computer.queue.othersSince(call.frame.inputs, caller),
      effect: await send(computer, caller, call, turn, deadline),
    };
  });
  const result: InputResult = {
    summary: call.summary(),
    applied: "yes",
    delivery: "foreground",
    others_since_frame: others,
    ...(effect !== undefined && Object.keys(effect).length > 0 ? { effect } : {}),
  };
  return call.screenshot ? withScreenshot(computer, caller, deadline.signal, result) : answer(result);
}

function checkDuration(computer: Computer, planned: PlannedInput): number {
  const needsMs = computer.driver.estimateMs(planned);
  if (needsMs <= MAX_INPUT_MS) return needsMs;
  throw new AgentEnvError(
    "invalid_argument",
    `this would take about ${Math.ceil(needsMs / 1000)} s, and a call may take ${MAX_INPUT_MS / 1000} s`,
    { hint: "split it into several calls" },
  );
}

/** What a window manager takes first and then passes on. */
const PASSED_ON: ReadonlySet<PlannedInput["kind"]> = new Set(["click", "drag", "pointer"]);

async function send(
  computer: Computer,
  caller: Caller,
  call: InputCall,
  turn: InputTurn,
  deadline: Deadline,
): Promise<Effect | undefined> {
  const delivery = new CallDelivery(computer, caller, turn);
  await computer.clicksPassedOn();
  if (PASSED_ON.has(call.planned.kind)) computer.clicked();
  const work = started(() => call.send(deadline.signal, delivery));
  try {
    const effect = await deadline.bound(work);
    turn.delivered();
    // The picture is to show what the input set off in the window manager.
    if (call.screenshot) await computer.clicksPassedOn();
    return effect ?? undefined;
  } catch (thrown) {
    const error = failure(thrown, delivery.hasSent, deadline);
    if (error.applied !== "no") turn.delivered();
    // An operation that was left behind may still send: nobody else's input comes between.
    turn.outlast(work);
    throw error;
  }
}

async function started(send: () => Promise<Effect | undefined> | Promise<void>): Promise<Effect | undefined> {
  return (await send()) ?? undefined;
}

function failure(thrown: unknown, hasSent: boolean, deadline: Deadline): AgentEnvError {
  if (thrown instanceof AgentEnvError) {
    return hasSent && thrown.applied === "no" ? thrown.withApplied("unknown") : thrown;
  }
  if (deadline.passed) {
    return new AgentEnvError("timeout", `the input was not done after ${deadline.ms / 1000} s and may still happen`, {
      hint: LOOK,
      cause: thrown,
    });
  }
  return new AgentEnvError("delivery_failed", `the input may have been delivered in part: ${messageOf(thrown)}`, {
    hint: LOOK,
    cause: thrown,
  });
}

async function withScreenshot(
  computer: Computer,
  caller: Caller,
  signal: AbortSignal,
  result: InputResult,
): Promise<ToolResult> {
  try {
    const frame = await computer.capture(caller, signal);
    const image = await imageOf(frame);
    return answer({ ...result, summary: `${result.summary}, then captured ${frame.id}`, frame: frame.data() }, image);
  } catch (thrown) {
    // The input was applied: its answer says so, with or without the picture.
    const why = thrown instanceof AgentEnvError ? `${thrown.code}: ${thrown.message}` : messageOf(thrown);
    return answer({ ...result, summary: `${result.summary}; the screenshot after it failed (${why})` });
  }
}

/** What the operations of one call tell about it. */
export class CallDelivery implements Delivery {
  #sent = false;

  constructor(
    private readonly computer: Computer,
    readonly caller: Caller,
    private readonly turn: InputTurn,
  ) {}

  get hasSent(): boolean {
    return this.#sent;
  }

  sent(): void {
    this.#sent = true;
  }

  /** Whether an operation that failed so may have reached the computer. */
  mayHaveSent(thrown: unknown): boolean {
    return this.#sent || !(thrown instanceof AgentEnvError) || thrown.applied !== "no";
  }

  passedOn(): void {
    this.computer.noClicksHeld();
  }

  outlast(work: Promise<unknown>): void {
    this.turn.outlast(work);
  }

  get held(): HeldKeys {
    return { own: this.computer.keys.of(this.caller), others: this.computer.keys.ofOthers(this.caller) };
  }
}
