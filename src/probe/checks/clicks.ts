import { setTimeout as sleep } from "node:timers/promises";
import { InputResult, SPACES_URN } from "../../protocol/computer.js";
import { expectSame, expectThat, Finding, type FullCheck } from "../check.js";
import type { Board } from "../fixture/board.js";
import { CONTROL, type Entry } from "../fixture/state.js";
import { Picture } from "../picture.js";
import type { Shot } from "../session.js";

/** The numbers of X's buttons. Source: X11 protocol, and what X servers send for back and forward. */
const NUMBERS: Record<string, number> = { left: 1, middle: 2, right: 3, back: 8, forward: 9 };
/** How long a program may take to draw what it has told already. */
const DRAW_MS = 2_000;

const presses = (events: readonly Entry[]) => events.filter(([kind]) => kind === "down");
const releases = (events: readonly Entry[]) => events.filter(([kind]) => kind === "up");

/** P4: clicks arrive where they were aimed, as what they were. */
export const clickChecks: FullCheck[] = [
  {
    id: "P4",
    name: "a click in frame space hits its cell, and the next frames show it",
    level: "full",
    async run(board) {
      const { session, layout } = board;
      const shot = await session.shot();
      const before = await pressed(board, "2,3");
      const point = board.at(shot, "board", board.cell(2, 3));
      const args = { ...point, frame_id: shot.frame_id, screenshot: true };
      const result = await session.call("computer_click", args);
      const answer = InputResult.safeParse(result.structuredContent);
      expectThat(answer.success, `it answered ${JSON.stringify(result.structuredContent)}`);
      expectSame("applied and delivery", [answer.data.applied, answer.data.delivery], ["yes", "foreground"]);
      const { width, height } = await Picture.of(result);
      expectSame("the fresh frame's size", [answer.data.frame?.width, answer.data.frame?.height], [width, height]);
      await hit(board, "2,3", before);
      await drawn(board, point, layout.paints[(before + 1) % layout.paints.length]);
    },
  },
  {
    id: "P4",
    name: "a click in norm space hits its cell",
    level: "full",
    needs: [SPACES_URN],
    async run(board) {
      const shot = await board.session.shot();
      const before = await pressed(board, "5,5");
      const { x, y } = board.at(shot, "board", board.cell(5, 5));
      await board.session.ok("computer_click", {
        x: ((x + 0.5) * 1000) / shot.width,
        y: ((y + 0.5) * 1000) / shot.height,
        frame_id: shot.frame_id,
        space: "norm",
        norm_scale: 1000,
      });
      await hit(board, "5,5", before);
    },
  },
  {
    id: "P4",
    name: "the norm grid's far edge is the frame's last pixel, and its near edge the first",
    level: "full",
    async run(board) {
      const crop = await partOf(board, await board.session.shot());
      const [left, top, width, height] = board.layout.boxes.board;
      for (const [edge, norm_scale, x, y] of [
        [1000, 1000, left + width - 1, top + height - 1],
        [1, 1, left + width - 1, top + height - 1],
        [0, 1_000_000, left, top],
      ] as const) {
        const count = await board.count();
        await board.session.ok("computer_click", {
          x: edge,
          y: edge,
          frame_id: crop.frame_id,
          space: "norm",
          norm_scale,
        });
        const [press] = presses(await board.events(count, (events) => presses(events).length > 0));
        const { scale } = crop.display;
        const near = (seen: number | undefined, wanted: number) =>
          Math.abs((seen ?? -9) - wanted) <= (scale > 1 ? 1 : 0);
        expectThat(
          near(press?.[2], x) && near(press?.[3], y),
          `${edge} of ${norm_scale} came to ${press?.slice(2, 4)}, not ${x},${y}`,
        );
      }
    },
  },
  {
    id: "P4",
    name: "a click in a crop, and in a crop of it, maps back to the screen",
    level: "full",
    async run(board) {
      const { session, layout } = board;
      const crop = await partOf(board, await session.shot());
      const { scale } = crop.display;
      const at = (row: number, column: number) => board.cell(row, column).map((each) => Math.floor(each * scale));
      const [first, second] = [await pressed(board, "6,4"), await pressed(board, "4,7")];
      const [left, top] = [Math.floor(3 * layout.cell * scale) + 1, Math.floor(2 * layout.cell * scale) + 3];
      const inner = await session.shot({ region: [left, top, crop.width, crop.height], frame_id: crop.frame_id });
      // Neither is the latest frame.
      await session.shot();
      const [x, y] = at(6, 4);
      await session.ok("computer_click", { x, y, frame_id: crop.frame_id });
      await hit(board, "6,4", first);
      const [x2 = 0, y2 = 0] = at(4, 7);
      await session.ok("computer_click", { x: x2 - left, y: y2 - top, frame_id: inner.frame_id });
      await hit(board, "4,7", second);
    },
  },
  {
    id: "P4",
    name: "each button of the card arrives as that button, pressed once and released",
    level: "full",
    async run(board) {
      const shot = await board.session.shot();
      for (const button of board.driver.buttons) {
        const count = await board.count();
        const point = board.at(shot, "dots");
        await board.session.ok("computer_click", { ...point, frame_id: shot.frame_id, button });
        const events = await board.events(count, (seen) => releases(seen).length > 0);
        const wanted = [
          ["down", NUMBERS[button]],
          ["up", NUMBERS[button]],
        ];
        expectSame(
          `what came of ${button}`,
          events.map(([kind, what]) => [kind, what]),
          wanted,
        );
      }
    },
  },
  {
    id: "P4",
    name: "a double and a triple click are taken for such",
    level: "full",
    unless: (driver) => (driver.limit("max_click_count") >= 2 ? undefined : "it clicks once at most"),
    async run(board) {
      const shot = await board.session.shot();
      const before = await board.state();
      const most = Math.min(3, board.driver.limit("max_click_count"));
      const click = { ...board.at(shot, "board", board.cell(7, 7)), frame_id: shot.frame_id };
      await board.session.ok("computer_click", { ...click, count: most });
      const kind = most === 2 ? "doubles" : "triples";
      await board.until(
        (state) => state[kind] === before[kind] + 1 && state.cells["7,7"] === (before.cells["7,7"] ?? 0) + most,
        (state) => [state.doubles, state.triples, state.cells["7,7"]],
      );
    },
  },
  {
    id: "P4",
    name: "modifiers are down for their click and up after it",
    level: "full",
    unless: (driver) => (driver.hasKeys("Control") ? undefined : "it has no Control key"),
    async run(board) {
      const shot = await board.session.shot();
      const count = await board.count();
      const click = { ...board.at(shot, "dots"), frame_id: shot.frame_id };
      await board.session.ok("computer_click", { ...click, modifiers: ["Control"] });
      await board.session.ok("computer_click", click);
      const events = await board.events(count, (seen) => releases(seen).length >= 2);
      const held = presses(events).map(([, , , , state]) => (state & CONTROL) !== 0);
      expectSame("Control at the two presses", held, [true, false]);
    },
  },
  {
    id: "P4",
    name: "a button and a checkbox take a click",
    level: "full",
    async run(board) {
      const shot = await board.session.shot();
      const before = await board.state();
      await board.click(shot, "push");
      await board.click(shot, "tick");
      await board.until(
        (state) => state.pushed === before.pushed + 1 && state.ticked !== before.ticked,
        (state) => [state.pushed, state.ticked],
      );
    },
  },
];

/** The board as a frame of its own. */
async function partOf({ session, layout }: Board, whole: Shot): Promise<Shot> {
  const [left, top, width, height] = layout.boxes.board;
  const { scale } = whole.display;
  const region = [left, top, left + width, top + height].map((each) => Math.floor(each * scale));
  return session.shot({ region, frame_id: whole.frame_id });
}

/** How often a cell was pressed. */
async function pressed(board: Board, cell: string): Promise<number> {
  return (await board.state()).cells[cell] ?? 0;
}

async function hit(board: Board, cell: string, before: number): Promise<void> {
  await board.until(
    (state) => state.cells[cell] === before + 1,
    (state) => state.cells,
  );
}

async function drawn({ session }: Board, { x, y }: { x: number; y: number }, colour?: string): Promise<void> {
  const deadline = performance.now() + DRAW_MS;
  for (;;) {
    const seen = (await session.shot()).picture.at(x, y);
    if (seen === colour) return;
    if (performance.now() > deadline) throw new Finding(`the frames show ${seen} there, not ${colour}`);
    await sleep(50);
  }
}
