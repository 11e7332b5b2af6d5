import { setTimeout as sleep } from "node:timers/promises";
import { type BasicCheck, Difference, expectSame, expectThat, type FullCheck, NotApplicable } from "../check.js";
import type { Driver } from "../driver.js";
import type { Entry } from "../fixture/state.js";
import type { ProbeSession } from "../session.js";
import { ONE_CALLER } from "./frames.js";

const SESSIONS = 5;
const CALLS = 50;
/** How far apart the calls are sent, in milliseconds. */
const APART_MS = 12;
/** Calls that were sent further apart than this came in that order. */
const CERTAIN_MS = 150;

/** Whether all sessions are one caller to the driver: one that took no frame then has one. */
export async function oneCaller(driver: Driver): Promise<boolean> {
  await (await driver.session()).shot();
  const result = await (await driver.session()).call("computer_screenshot", { region: [0, 0, 2, 2] });
  return result.isError !== true;
}

/** P4: several callers at once, and calls that are let go. */
export const callerChecks: (BasicCheck | FullCheck)[] = [
  {
    id: "P4",
    name: "a wait that is let go ends, and its session goes on",
    level: "basic",
    async run(driver) {
      const session = await driver.session();
      const letGo = new AbortController();
      const ms = Math.min(20_000, driver.limit("max_wait_ms"));
      const wait = session.call("computer_wait", { ms }, letGo.signal);
      // What was sent may be on its way still.
      setTimeout(() => letGo.abort(), 200);
      await wait.then(
        () => expectThat(false, "it was answered before its time"),
        () => {},
      );
      const started = performance.now();
      await session.ok("computer_wait", { ms: 0 });
      expectThat(performance.now() - started < 5_000, "the next call of the session took more than 5 s");
    },
  },
  {
    id: "P4",
    name: "50 calls at once from 5 sessions all land, whole and in the order in which they came",
    level: "full",
    deadlineMs: 60_000,
    async run(board) {
      const { driver, layout } = board;
      const shot = await board.session.shot();
      const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => driver.session()));
      const count = await board.count();
      const sent: { at: number; x: number; y: number }[] = [];
      const calls: Promise<unknown>[] = [];
      for (let index = 0; index < CALLS; index += 1) {
        const session = sessions[index % SESSIONS] as ProbeSession;
        const cell = board.cell(Math.floor(index / layout.columns), index % layout.columns);
        const point = board.at(shot, "board", cell);
        sent.push({ at: performance.now(), ...point });
        const call = session.ok("computer_click", { ...point, frame_id: shot.frame_id });
        // One that fails while the next is awaited is told by the wait for all of them.
        call.catch(() => {});
        calls.push(call);
        await sleep(APART_MS, undefined, { signal: driver.signal });
      }
      await Promise.all(calls);
      const events = await board.events(count, (seen) => seen.length >= 2 * CALLS);
      expectSame("how many events came", events.length, 2 * CALLS);
      const torn = events.findIndex(([kind], index) => kind !== (index % 2 === 0 ? "down" : "up"));
      expectThat(torn === -1, `event ${torn} is no whole click's: ${JSON.stringify(events.slice(torn - 1, torn + 2))}`);
      const { scale } = shot.display;
      const came = events.flatMap(([kind, , x, y]) => (kind === "down" ? [indexOf(sent, x * scale, y * scale)] : []));
      expectSame(
        "which clicks landed",
        [...came].sort((a, b) => a - b),
        [...sent.keys()],
      );
      for (const [place, index] of came.entries()) {
        const overtaken = came
          .slice(place + 1)
          .find((later) => (sent[index]?.at ?? 0) - (sent[later]?.at ?? 0) > CERTAIN_MS);
        expectThat(
          overtaken === undefined,
          `click ${index} landed before click ${overtaken}, which was sent much earlier`,
        );
      }
    },
  },
  {
    id: "P4",
    name: "input of others since a frame is counted, and one's own isn't",
    level: "full",
    async run(board) {
      const { driver, session } = board;
      const shot = await session.shot();
      const click = { ...board.at(shot, "dots"), frame_id: shot.frame_id };
      const other = await driver.session();
      const counts: unknown[] = [];
      const counted = async (by: ProbeSession) => {
        counts.push((await by.ok("computer_click", click)).others_since_frame);
      };
      await counted(session);
      await counted(other);
      await counted(session);
      await counted(other);
      if ((await oneCaller(driver)) && counts.every((count) => count === 0)) throw new Difference(ONE_CALLER);
      expectSame("others_since_frame of one, another, one and another", counts, [0, 1, 1, 2]);
      const fresh = await session.shot();
      const { others_since_frame } = await session.ok("computer_click", { ...click, frame_id: fresh.frame_id });
      expectSame("others_since_frame on a fresh frame", others_since_frame, 0);
    },
  },
  {
    id: "P4",
    name: "input that is let go while it waits for its turn never arrives, and nobody waits for it",
    level: "full",
    async run(board) {
      const { driver, session } = board;
      const shot = await session.shot();
      const [waiting, next] = [await driver.session(), await driver.session()];
      const duration_ms = Math.min(1_000, driver.limit("max_duration_ms"));
      const path = [
        [10, 10],
        [200, 200],
      ].map(([x = 0, y = 0]) => Object.values(board.at(shot, "pad", [x, y])));
      const count = await board.count();
      const drag = session
        .ok("computer_drag", { path, duration_ms, frame_id: shot.frame_id })
        .then(() => performance.now());
      // One that fails before it is waited for makes the check fail, not the process.
      drag.catch(() => {});
      await board.events(count, (seen) => seen.some(isPress));
      const letGo = new AbortController();
      const point = board.at(shot, "board", board.cell(6, 9));
      const call = waiting.call("computer_click", { ...point, frame_id: shot.frame_id }, letGo.signal);
      call.catch(() => {});
      await sleep(200, undefined, { signal: driver.signal });
      letGo.abort();
      // The notification is on its way.
      const certain = performance.now() + 200;
      const after = next.ok("computer_click", {
        ...board.at(shot, "board", board.cell(6, 8)),
        frame_id: shot.frame_id,
      });
      const [ended] = await Promise.all([drag, after]);
      if (ended < certain) throw new NotApplicable(`its drag of ${duration_ms} ms was over too soon to wait for`);
      const events = await board.events(count, (seen) => seen.filter((entry) => entry[0] === "up").length >= 2);
      const landed = events.filter(isPress).map(([, , x, y]) => [x, y]);
      expectThat(landed.length === 2, `${landed.length} clicks arrived, and the one that was let go is among them`);
    },
  },
];

const isPress = ([kind]: Entry) => kind === "down";

/** Which of the points is meant: within two pixels, since a display's scale may not be whole. */
function indexOf(points: readonly { x: number; y: number }[], x: number, y: number): number {
  return points.findIndex((point) => Math.abs(point.x - x) <= 2 && Math.abs(point.y - y) <= 2);
}
