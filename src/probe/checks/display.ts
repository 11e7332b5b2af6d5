import { DISPLAY_URN, DisplayAnswer } from "../../protocol/computer.js";
import type { JsonObject } from "../../protocol/tool.js";
import { type BasicCheck, expectSame, expectThat } from "../check.js";
import type { Driver } from "../driver.js";

const needs = [DISPLAY_URN];
/** Putting a display back goes on when the check is over. */
const RESTORE_MS = 10_000;

const cannotSet = (driver: Driver) => (driver.has(DISPLAY_URN, "set") ? undefined : "its display can't be set");
const cannotChange = (driver: Driver) => {
  const { modes } = driver.params(DISPLAY_URN);
  return cannotSet(driver) ?? (Array.isArray(modes) && modes.length < 2 ? "its display has one mode alone" : undefined);
};

/** X: computer-display. */
export const displayChecks: BasicCheck[] = [
  {
    id: "X",
    name: "computer-display get says what frames say",
    level: "basic",
    needs,
    async run(driver) {
      const { width, height, scale } = answerOf(await driver.invoke(DISPLAY_URN, "get"));
      expectSame("the display", (await (await driver.session()).shot()).display, { width, height, scale });
    },
  },
  {
    id: "X",
    name: "computer-display set to the mode that is keeps it, and frames with it",
    level: "basic",
    needs,
    unless: cannotSet,
    async run(driver) {
      const session = await driver.session();
      const { frame_id } = await session.shot();
      const { width, height, scale } = answerOf(await driver.invoke(DISPLAY_URN, "get"));
      const set = answerOf(await driver.invoke(DISPLAY_URN, "set", { width, height }));
      expectSame("the display", [set.width, set.height, set.scale], [width, height, scale]);
      await session.shot({ region: [0, 0, 2, 2], frame_id });
    },
  },
  {
    id: "X",
    name: "computer-display set refuses a size that is no mode",
    level: "basic",
    needs,
    unless: cannotSet,
    async run(driver) {
      await driver.invokeRefused(DISPLAY_URN, "set", { width: 3, height: 5 }, "invalid_argument", 400);
    },
  },
  {
    id: "X",
    name: "frames from before a change of the display are stale, and the next ones have its size",
    level: "basic",
    needs,
    unless: cannotChange,
    async run(driver) {
      const session = await driver.session();
      const before = answerOf(await driver.invoke(DISPLAY_URN, "get"));
      const other = before.modes.find(([width, height]) => width !== before.width || height !== before.height);
      expectThat(other !== undefined, "set has one mode alone");
      const { frame_id } = await session.shot();
      const [width, height] = other;
      await driver.invoke(DISPLAY_URN, "set", { width, height });
      try {
        await session.refused("computer_click", { x: 1, y: 1, frame_id }, "stale_frame");
        const { display } = await session.shot();
        expectSame("the next frame's display", [display.width, display.height], [width, height]);
      } finally {
        const restoring = driver.during(AbortSignal.timeout(RESTORE_MS));
        await restoring.invoke(DISPLAY_URN, "set", { width: before.width, height: before.height, scale: before.scale });
      }
    },
  },
];

function answerOf(answer: JsonObject): DisplayAnswer {
  const parsed = DisplayAnswer.safeParse(answer);
  expectThat(parsed.success, `computer-display answered ${JSON.stringify(answer)}`);
  return parsed.data;
}
