import { expectSame, expectThat, type FullCheck } from "../check.js";
import type { Board } from "../fixture/board.js";

const UNICODE = "Hello, Wörld! 東京 AbC";
const PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/** P6: text and keys arrive as they were asked for. */
export const typingChecks: FullCheck[] = [
  {
    id: "P6",
    name: "Unicode in both cases arrives whole, as key events",
    level: "full",
    async run(board) {
      await board.emptyLine();
      const count = await board.count();
      await types(board, UNICODE);
      const { journal, count: after } = await board.state();
      const keys = journal.slice(-(after - count)).flatMap(([kind, what]) => (kind === "key" ? [what] : []));
      const missing = ["H", "W", "comma", "space", "C"].filter((key) => !keys.includes(key));
      expectThat(missing.length === 0, `no key came for ${missing.join(", ")}`);
    },
  },
  {
    id: "P6",
    name: "all ASCII punctuation arrives",
    level: "full",
    async run(board) {
      await board.emptyLine();
      await types(board, PUNCTUATION);
    },
  },
  {
    id: "P6",
    name: "tabs and new lines arrive as typed",
    level: "full",
    async run(board) {
      await board.click(await board.session.shot(), "page");
      await board.session.ok("computer_type", { text: "one\ttwo\nthree" });
      await board.until(
        ({ page }) => page.endsWith("one\ttwo\nthree"),
        ({ page }) => page,
      );
    },
  },
  {
    id: "P6",
    name: "a chord is pressed in order and released in reverse, and its modifier applies",
    level: "full",
    unless: (driver) => (driver.hasKeys("Control", "Backspace", "/") ? undefined : "it lacks a key of the chord"),
    async run(board) {
      await board.emptyLine();
      await types(board, "abc");
      const count = await board.count();
      // In Tk this selects all.
      await board.session.ok("computer_key", { keys: ["Control", "/"] });
      const events = await board.events(count, (seen) => seen.filter(([kind]) => kind === "key up").length >= 2);
      const names = events.map(([kind, what]) => `${kind} ${String(what).replace(/_[LR]$/, "")}`);
      expectSame("what came", names, ["key Control", "key slash", "key up slash", "key up Control"]);
      await board.session.ok("computer_key", { keys: ["Backspace"] });
      await shows(board, "");
    },
  },
  {
    id: "P6",
    name: "a repeated key is pressed that many times",
    level: "full",
    async run(board) {
      await board.emptyLine();
      await types(board, "abcd");
      await board.session.ok("computer_key", { keys: ["Backspace"], repeat: 3 });
      await shows(board, "a");
    },
  },
  {
    id: "P6",
    name: "typing leaves the clipboard as it was",
    level: "full",
    async run(board) {
      await board.emptyLine();
      await board.session.ok("computer_type", { text: "é—" });
      await board.until(
        ({ line }) => line !== "",
        () => "nothing typed",
      );
      expectSame("the clipboard", (await board.state()).copied, board.layout.copied);
    },
  },
];

async function types(board: Board, text: string): Promise<void> {
  await board.session.ok("computer_type", { text });
  await shows(board, text);
}

async function shows(board: Board, text: string): Promise<void> {
  await board.until(
    ({ line }) => line === text,
    ({ line }) => line,
  );
}
