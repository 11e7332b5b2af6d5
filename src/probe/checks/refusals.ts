import { BUTTONS, KEYBOARD_URN } from "../../protocol/computer.js";
import type { JsonObject } from "../../protocol/tool.js";
import { type BasicCheck, type Check, expectSame, expectThat } from "../check.js";
import type { Driver } from "../driver.js";
import type { State } from "../fixture/state.js";
import { checkRefusal, type ProbeSession, type Shot, textOf } from "../session.js";

/** A call that a driver has to refuse with nothing done. */
interface Refusal {
  readonly what: string;
  readonly code: string;
  readonly tool: string;
  /** Aimed at a fresh frame of this size. */
  args(aim: { frame_id: string; width: number; height: number }, driver: Driver): JsonObject;
  /** What its hint has to hold: the value that was meant. */
  readonly hint?: string;
  readonly unless?: (driver: Driver) => string | undefined;
}

const point = { x: 1, y: 1 };

const REFUSALS: Refusal[] = [
  {
    what: "a point outside the frame",
    code: "out_of_bounds",
    tool: "computer_click",
    args: ({ frame_id, width }) => ({ x: width, y: 0, frame_id }),
  },
  {
    what: "a point below zero",
    code: "out_of_bounds",
    tool: "computer_click",
    args: ({ frame_id }) => ({ x: 0, y: -1, frame_id }),
  },
  {
    what: "a point past the norm grid's far edge",
    code: "out_of_bounds",
    tool: "computer_click",
    args: ({ frame_id }) => ({ x: 1000.5, y: 0, frame_id, space: "norm", norm_scale: 1000 }),
  },
  {
    what: "a drag that leaves the frame",
    code: "out_of_bounds",
    tool: "computer_drag",
    args: ({ frame_id, height }) => ({
      path: [
        [1, 1],
        [1, height],
      ],
      frame_id,
    }),
  },
  {
    what: "an empty region",
    code: "out_of_bounds",
    tool: "computer_screenshot",
    args: ({ frame_id }) => ({ region: [5, 5, 5, 9], frame_id }),
  },
  {
    what: "a region past the frame's end",
    code: "out_of_bounds",
    tool: "computer_screenshot",
    args: ({ frame_id, width, height }) => ({ region: [0, 0, width + 1, height], frame_id }),
  },
  {
    what: "an unknown frame",
    code: "stale_frame",
    tool: "computer_click",
    args: () => ({ ...point, frame_id: "f999999999" }),
  },
  {
    what: "a key as models spell it",
    code: "invalid_argument",
    tool: "computer_key",
    args: () => ({ keys: ["ctrl", "s"] }),
    hint: "Control",
  },
  {
    what: "a key as X spells it",
    code: "invalid_argument",
    tool: "computer_key",
    args: () => ({ keys: ["Return"] }),
    hint: "Enter",
  },
  {
    what: "a chord in one string",
    code: "invalid_argument",
    tool: "computer_key",
    args: () => ({ keys: ["ctrl+s"] }),
    hint: "Control",
  },
  { what: "an empty chord", code: "invalid_argument", tool: "computer_key", args: () => ({ keys: [] }) },
  {
    what: "a control character in a text",
    code: "invalid_argument",
    tool: "computer_type",
    args: () => ({ text: "a\u001bb" }),
  },
  { what: "an empty text", code: "invalid_argument", tool: "computer_type", args: () => ({ text: "" }) },
  {
    what: "a text longer than the card says",
    code: "invalid_argument",
    tool: "computer_type",
    args: (_, driver) => ({ text: "a".repeat(driver.limit("max_text_length") + 1) }),
  },
  {
    what: "more clicks than the card says",
    code: "invalid_argument",
    tool: "computer_click",
    args: ({ frame_id }, driver) => ({ ...point, frame_id, count: driver.limit("max_click_count") + 1 }),
  },
  {
    what: "more repeats than the card says",
    code: "invalid_argument",
    tool: "computer_key",
    args: (_, driver) => ({ keys: ["a"], repeat: driver.limit("max_key_repeat") + 1 }),
  },
  {
    what: "more scrolling than the card says",
    code: "invalid_argument",
    tool: "computer_scroll",
    args: ({ frame_id }, driver) => ({
      ...point,
      frame_id,
      direction: "down",
      amount: driver.limit("max_scroll_amount") + 1,
    }),
  },
  {
    what: "a drag through more points than the card says",
    code: "invalid_argument",
    tool: "computer_drag",
    args: ({ frame_id }, driver) => ({ path: Array(driver.limit("max_drag_points") + 1).fill([1, 1]), frame_id }),
  },
  {
    what: "a drag of one point",
    code: "invalid_argument",
    tool: "computer_drag",
    args: ({ frame_id }) => ({ path: [[1, 1]], frame_id }),
  },
  {
    what: "a longer wait than the card says",
    code: "invalid_argument",
    tool: "computer_wait",
    args: (_, driver) => ({ ms: driver.limit("max_wait_ms") + 1 }),
  },
  {
    what: "a norm grid of no size",
    code: "invalid_argument",
    tool: "computer_click",
    args: ({ frame_id }) => ({ x: 0, y: 0, frame_id, space: "norm", norm_scale: 0 }),
  },
  {
    what: "a frame_id without a region",
    code: "invalid_argument",
    tool: "computer_screenshot",
    args: ({ frame_id }) => ({ frame_id }),
  },
  {
    what: "a quality for a PNG",
    code: "invalid_argument",
    tool: "computer_screenshot",
    args: () => ({ format: "png", quality: 50 }),
  },
  {
    what: "letting go of keys while none is held",
    code: "invalid_argument",
    tool: "computer_keyboard_up",
    args: () => ({}),
    unless: (driver) => (driver.declares(KEYBOARD_URN) ? undefined : "the driver has no keyboard group"),
  },
];

/** A button that the card doesn't have may be refused by the tool's schema or by the driver. */
const otherButton: BasicCheck = {
  id: "P5",
  name: "a button that the card doesn't have is refused",
  level: "basic",
  unless: (driver) => (BUTTONS.every((button) => driver.buttons.includes(button)) ? "it has all buttons" : undefined),
  async run(driver) {
    const session = await driver.session();
    const { frame_id } = await session.shot();
    const button = BUTTONS.find((each) => !driver.buttons.includes(each));
    const result = await session.call("computer_click", { ...point, frame_id, button });
    const code = result.structuredContent?.code;
    expectThat(code === "unsupported" || code === "invalid_argument", `it answered ${textOf(result)}`);
  },
};

/** P5: what is refused, how, and that nothing happened. */
export const refusalChecks: Check[] = [
  ...REFUSALS.map(
    (refusal): BasicCheck => ({
      id: "P5",
      name: `${refusal.what} is refused ${refusal.code}`,
      level: "basic",
      ...(refusal.unless === undefined ? {} : { unless: refusal.unless }),
      async run(driver) {
        const session = await driver.session();
        const result = await refuse(refusal, session, driver);
        const { hint, message } = checkRefusal(result, refusal.code);
        expectSame("the text", textOf(result), `${refusal.code}: ${message}`);
        if (refusal.hint !== undefined) {
          expectThat(String(hint).includes(refusal.hint), `its hint doesn't name ${refusal.hint}: ${hint}`);
        }
      },
    }),
  ),
  otherButton,
  {
    id: "P5",
    name: "what is refused leaves the fixture as it was",
    level: "full",
    async run(board) {
      const { driver, session } = board;
      const shot = await session.shot();
      await board.emptyLine();
      await board.count();
      const before = await board.state();
      await refuseAll(driver, session, shot);
      // Input is delivered in order, so nothing of theirs can come after this.
      await board.click(shot, "dots");
      const after = await board.until(
        (state) => state.count >= before.count + 2,
        (state) => state.journal.slice(-4),
      );
      expectSame(
        "what came after",
        after.journal.slice(-(after.count - before.count)).map(([kind]) => kind),
        ["down", "up"],
      );
      const { journal: _journal, count: _count, ...rest } = before;
      for (const [name, value] of Object.entries(rest)) expectSame(name, after[name as keyof State], value);
    },
  },
];

async function refuse(refusal: Refusal, session: ProbeSession, driver: Driver) {
  return session.call(refusal.tool, refusal.args(await session.shot(), driver));
}

async function refuseAll(driver: Driver, session: ProbeSession, aim: Shot): Promise<void> {
  for (const { tool, args, unless } of REFUSALS) {
    if (unless?.(driver) === undefined) await session.call(tool, args(aim, driver));
  }
}
