import { KEYBOARD_URN, KeyboardAnswer } from "../../protocol/computer.js";
import { Difference, expectSame, expectThat, type FullCheck } from "../check.js";
import type { Board } from "../fixture/board.js";
import type { Entry } from "../fixture/state.js";
import { oneCaller } from "./callers.js";

const isShift = (kind: string) => (entry: Entry) => entry[0] === kind && String(entry[1]).startsWith("Shift");

/** P6: keys that are held down. Each check leaves none behind, whatever it finds. */
export const heldKeyChecks: FullCheck[] = [
  {
    id: "P6",
    name: "a held key stays down while text is typed, until it is let go",
    level: "full",
    needs: [KEYBOARD_URN],
    async run(board) {
      const { session } = board;
      await board.emptyLine();
      await session.ok("computer_keyboard_down", { keys: ["Shift"] });
      await session.ok("computer_type", { text: "abc" });
      await session.ok("computer_keyboard_up", {});
      await session.ok("computer_type", { text: "d" });
      await board.until(
        ({ line }) => line === "ABCd",
        ({ line }) => line,
      );
    },
  },
  {
    id: "P6",
    name: "keys held for a time are released within the call",
    level: "full",
    needs: [KEYBOARD_URN],
    async run(board) {
      const { session } = board;
      await board.emptyLine();
      const count = await board.count();
      await session.ok("computer_keyboard_down", { keys: ["Shift"], hold_ms: 200 });
      const events = await board.events(count, (seen) => seen.some(isShift("key up")));
      expectSame(
        "what came",
        events.map(([kind]) => kind),
        ["key", "key up"],
      );
      await session.refused("computer_keyboard_up", {}, "invalid_argument");
    },
  },
  {
    id: "P6",
    name: "a key that is held for longer than max_hold_ms is released by itself",
    level: "full",
    needs: [KEYBOARD_URN],
    async run(board) {
      const { driver } = board;
      const usual = KeyboardAnswer.parse(await driver.invoke(KEYBOARD_URN, "get"));
      await driver.invoke(KEYBOARD_URN, "set", { max_hold_ms: 300 });
      try {
        const holder = await driver.session();
        await releasedBy(board, async () => {
          await holder.ok("computer_keyboard_down", { keys: ["Shift"] });
        });
      } finally {
        await driver.during(AbortSignal.timeout(5_000)).invoke(KEYBOARD_URN, "set", { max_hold_ms: usual.max_hold_ms });
      }
    },
  },
  {
    id: "P6",
    name: "keys that a session holds are released when it ends",
    level: "full",
    needs: [KEYBOARD_URN],
    async run(board) {
      const { driver, session } = board;
      if (await oneCaller(driver)) {
        throw new Difference("it takes all sessions for one caller, so a key outlives the session that held it");
      }
      const usual = KeyboardAnswer.parse(await driver.invoke(KEYBOARD_URN, "get"));
      expectThat(
        usual.max_hold_ms >= 3_000,
        `max_hold_ms is ${usual.max_hold_ms}: too short to tell its release apart`,
      );
      await releasedBy(
        board,
        async () => {
          const holder = await driver.session();
          await holder.ok("computer_keyboard_down", { keys: ["Shift"] });
          await session.refused("computer_keyboard_up", {}, "invalid_argument");
          await holder.close();
        },
        usual.max_hold_ms / 2,
      );
    },
  },
];

/** Whether Shift goes down and up again with what is done; the press alone isn't enough. */
async function releasedBy(board: Board, act: () => Promise<void>, ms?: number): Promise<void> {
  await board.emptyLine();
  const count = await board.count();
  await act();
  await board.events(count, (seen) => seen.some(isShift("key")) && seen.some(isShift("key up")), ms);
  await board.session.ok("computer_type", { text: "x" });
  await board.until(
    ({ line }) => line === "x",
    ({ line }) => line,
  );
}
