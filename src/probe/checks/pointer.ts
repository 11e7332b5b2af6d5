import { setTimeout as sleep } from "node:timers/promises";
import { POINTER_URN } from "../../protocol/computer.js";
import { type Check, expectSame, expectThat } from "../check.js";

/** For how long a button that is pressed has to stay down to be taken for it, in milliseconds. */
const STAYS_MS = 200;
const needs = [POINTER_URN];

/** X: the pointer group. */
export const pointerChecks: Check[] = [
  {
    id: "X",
    name: "computer_pointer_list names one default pointer",
    level: "basic",
    needs,
    async run(driver) {
      const { pointers } = await (await driver.session()).ok("computer_pointer_list");
      const defaults = Array.isArray(pointers) ? pointers.filter((pointer) => pointer?.default === true) : [];
      expectThat(defaults.length === 1, `it lists ${JSON.stringify(pointers)}`);
    },
  },
  {
    id: "X",
    name: "the pointer goes where it is sent, and its position is told in a frame's pixels",
    level: "basic",
    needs,
    async run(driver) {
      const session = await driver.session();
      const { frame_id, width, height } = await session.shot();
      const [x, y] = [Math.floor(width / 3), Math.floor(height / 3)];
      await session.ok("computer_pointer_move", { x, y, frame_id });
      const where = await session.ok("computer_pointer_position", { frame_id });
      expectSame("its position", [where.x, where.y, where.inside_frame, where.frame_id], [x, y, true, frame_id]);
      const region = [x + 5, y - 2, width, height];
      const crop = await session.shot({ region, frame_id });
      const outside = await session.ok("computer_pointer_position", { frame_id: crop.frame_id });
      expectSame("beside a crop", [outside.x, outside.y, outside.inside_frame], [-5, 2, false]);
    },
  },
  {
    id: "X",
    name: "the norm grid's far corner is the screen's last pixel",
    level: "basic",
    needs,
    async run(driver) {
      const session = await driver.session();
      const { frame_id, width, height } = await session.shot();
      const far = { x: 1000, y: 1000, frame_id, space: "norm", norm_scale: 1000 };
      await session.ok("computer_pointer_move", far);
      const where = await session.ok("computer_pointer_position", { frame_id });
      expectSame("its position", [where.x, where.y, where.inside_frame], [width - 1, height - 1, true]);
    },
  },
  {
    id: "X",
    name: "a button pressed and released by itself, and a click at the pointer, each push a button",
    level: "full",
    needs,
    async run(board) {
      const { session } = board;
      const shot = await session.shot();
      const count = await board.count();
      const { pushed } = await board.state();
      await session.ok("computer_pointer_down", { ...board.at(shot, "push"), frame_id: shot.frame_id });
      await board.events(count, (seen) => seen.length > 0);
      // A release that nobody asked for would be right behind.
      await sleep(STAYS_MS, undefined, { signal: board.driver.signal });
      expectSame(
        "what came of a press alone",
        (await board.events(count, () => true)).map(([kind]) => kind),
        ["down"],
      );
      await session.ok("computer_pointer_up");
      await session.ok("computer_click");
      await board.until(
        (state) => state.pushed === pushed + 2,
        (state) => state.pushed,
      );
    },
  },
];
