import { expectSame, expectThat, Finding, type FullCheck, NotApplicable } from "../check.js";
import type { Board } from "../fixture/board.js";
import { CONTROL } from "../fixture/state.js";

/** How far from a point of its path the motions of a drag may be that Tk tells. */
const NEAR_PX = 12;

const DIRECTIONS = { up: 2, down: 3, left: 2, right: 1 };

/** P7: scrolls and drags. */
export const motionChecks: FullCheck[] = [
  {
    id: "P7",
    name: "a scroll moves a list",
    level: "full",
    async run(board) {
      const { session } = board;
      const shot = await session.shot();
      const scroll = { ...board.at(shot, "roll"), frame_id: shot.frame_id, amount: 5 };
      await session.ok("computer_scroll", { ...scroll, direction: "down" });
      const { top } = await board.until(
        (state) => state.top > 0,
        (state) => state.top,
      );
      await session.ok("computer_scroll", { ...scroll, direction: "up" });
      await board.until(
        (state) => state.top < top,
        (state) => state.top,
      );
    },
  },
  {
    id: "P7",
    name: "scrolls up, down, left and right arrive, each as often as was asked",
    level: "full",
    async run(board) {
      const shot = await board.session.shot();
      const { wheel: before } = await board.state();
      const wanted = { ...before };
      for (const [direction, amount] of Object.entries(DIRECTIONS)) {
        const aim = { ...board.at(shot, "wheel"), frame_id: shot.frame_id };
        await board.session.ok("computer_scroll", { ...aim, direction, amount });
        wanted[direction as keyof typeof DIRECTIONS] += amount;
      }
      await board.until(
        ({ wheel }) => JSON.stringify(wheel) === JSON.stringify(wanted),
        ({ wheel }) => wheel,
      );
    },
  },
  {
    id: "P7",
    name: "modifiers are down for every step of a scroll",
    level: "full",
    unless: (driver) => (driver.hasKeys("Control") ? undefined : "it has no Control key"),
    async run(board) {
      const shot = await board.session.shot();
      const count = await board.count();
      const aim = { ...board.at(shot, "wheel"), frame_id: shot.frame_id };
      const scroll = { ...aim, direction: "down", amount: 3, modifiers: ["Control"] };
      const result = await board.session.call("computer_scroll", scroll);
      if (result.structuredContent?.code === "unsupported") throw new NotApplicable("it can't scroll with keys held");
      expectThat(result.isError !== true, `it failed: ${JSON.stringify(result.structuredContent)}`);
      const isStep = ([kind, button]: [string, unknown, ...unknown[]]) => kind === "down" && button === 5;
      const events = await board.events(count, (seen) => seen.filter(isStep).length >= 3);
      const held = events.filter(isStep).map(([, , , , state]) => (state & CONTROL) !== 0);
      expectSame("Control at each step", held, [true, true, true]);
    },
  },
  {
    id: "P7",
    name: "a drag goes from where it begins to where it ends, through its points, in about its time",
    level: "full",
    async run(board) {
      // Tk merges motions that it is late for: a slower drag settles whose fault it was.
      let wrong: string | undefined;
      for (const ms of [400, 1_600, 6_000]) {
        wrong = await dragged(board, Math.min(ms, board.driver.limit("max_duration_ms")));
        if (wrong === undefined) return;
      }
      throw new Finding(String(wrong));
    },
  },
];

/** Drags on the pad, and answers what was wrong with it. */
async function dragged(board: Board, duration_ms: number): Promise<string | undefined> {
  const { session, driver } = board;
  const shot = await session.shot();
  const before = JSON.stringify((await board.state()).strokes.at(-1));
  const [first, end]: [Point, Point] = [
    [40, 40],
    [300, 260],
  ];
  const between: Point[] =
    driver.limit("max_drag_points") >= 4
      ? [
          [180, 90],
          [60, 200],
        ]
      : [];
  const points = [first, ...between, end];
  const path = points.map((point) => Object.values(board.at(shot, "pad", point)));
  const started = performance.now();
  await session.ok("computer_drag", { path, duration_ms, frame_id: shot.frame_id });
  const took = performance.now() - started;
  const state = await board.until(
    ({ strokes }) => strokes.length > 0 && JSON.stringify(strokes.at(-1)) !== before,
    () => "no drag",
  );
  const stroke = state.strokes.at(-1) ?? [];
  if (distance(stroke[0], first) > 2) return `it began at ${stroke[0]}, not at ${first}`;
  if (distance(stroke.at(-1), end) > 2) return `it ended at ${stroke.at(-1)}, not at ${end}`;
  if (stroke.length <= 3) return `it moved in ${stroke.length} steps alone`;
  for (const point of between) {
    const nearest = Math.min(...stroke.map((each) => distance(each, point)));
    if (nearest > NEAR_PX) return `it passed ${point} ${Math.round(nearest)} pixels away`;
  }
  if (took > duration_ms + 5_000) return `it took ${Math.round(took)} ms, not ${duration_ms}`;
  return undefined;
}

type Point = [x: number, y: number];

function distance(from: readonly [number, number] | undefined, [x, y]: readonly [number, number]): number {
  return from === undefined ? Number.POSITIVE_INFINITY : Math.hypot(from[0] - x, from[1] - y);
}
