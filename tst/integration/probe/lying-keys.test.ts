import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Caller } from "../../../src/environment/caller.js";
import type { JsonObject } from "../../../src/protocol/tool.js";
import type { Lie, RealCall } from "../../fakes/lying.js";
import { about, taking } from "../../fakes/lying-computer.js";
import { agentenv } from "../../harness/computer.js";
import { LyingReference } from "../../harness/lying-reference.js";

let computer: LyingReference;
beforeAll(async () => {
  computer = await LyingReference.start();
});
afterAll(() => computer?.[Symbol.asyncDispose]());

/** Whose session doesn't end with the one that called. */
let immortal = new Caller("immortal");
afterEach(async () => {
  await immortal.end();
  immortal = new Caller("immortal");
});

/** Calls a tool in pieces, one after the other. */
async function inPieces(real: RealCall, name: string, pieces: JsonObject[]) {
  let last: Awaited<ReturnType<RealCall>>;
  for (const args of pieces) last = await real(name, args);
  return last;
}

/** What is done, the check that it breaks, and what the check finds. */
const LIES: [what: string, lie: Lie, check: string, finding: RegExp][] = [
  [
    "keeps keys down whose session has ended",
    about("computer_keyboard_down", (name, args, call, real) => real(name, args, { ...call, caller: immortal })),
    "keys that a session holds",
    /the fixture shows \[\["key","Shift_L"/,
  ],
  [
    "keeps keys down longer than max_hold_ms",
    { extension: { "computer-keyboard/set": async (params) => ({ ...params }) } },
    "a key that is held for longer",
    /the fixture shows \[\["key","Shift_L"/,
  ],
  [
    "keeps keys down that were to be held for a time",
    taking("computer_keyboard_down", ({ hold_ms: _, ...args }) => args),
    "keys held for a time",
    /the fixture shows \[\["key","Shift_L"/,
  ],
  [
    "holds modifiers for the first step of a scroll alone",
    about("computer_scroll", (name, { modifiers, ...args }, _, real) =>
      inPieces(real, name, [
        { ...args, modifiers, amount: 1 },
        { ...args, amount: Number(args.amount) - 1 },
      ]),
    ),
    "modifiers are down for every step",
    /Control/,
  ],
  [
    "types a new line as a space",
    taking("computer_type", (args) => ({ ...args, text: String(args.text).replaceAll("\n", " ") })),
    "tabs and new lines",
    /the fixture shows/,
  ],
  [
    "leaves out punctuation",
    taking("computer_type", (args) => ({ ...args, text: String(args.text).replaceAll(/[~^`]/g, "") })),
    "all ASCII punctuation",
    /the fixture shows/,
  ],
  [
    "says that it scrolled and doesn't",
    about("computer_scroll", (_, { x, y, frame_id }, __, real) => real("computer_pointer_move", { x, y, frame_id })),
    "a scroll moves a list",
    /the fixture shows/,
  ],
  [
    "clicks where a button was to be pressed",
    about("computer_pointer_down", (_, args, __, real) => real("computer_click", args)),
    "a button pressed and released by itself",
    /what came of a press alone is \["down","up"\]/,
  ],
];

describe("a driver that", () => {
  it.each(LIES)("%s is found out", async (_, told, name, finding) => {
    const [result] = await computer.probed(told, name);
    expect(result).toMatchObject({ status: "failed", detail: expect.stringMatching(finding) });
  });

  it("does none of that passes", async () => {
    const results = await computer.probed({}, ...new Set(LIES.map(([, , check]) => check)));
    expect(results.filter(({ status }) => status !== "passed")).toEqual([]);
  });
});

describe("agentenv probe", () => {
  it("prints a line a check and the counts, and exits with 1 when one failed and with 0 when none did", async () => {
    const url = computer.serving.url;
    for (const [lie, code] of [
      [about("computer_wait", async () => ({ content: [] })), 1],
      [{}, 0],
    ] as const) {
      computer.tell(lie);
      await using command = agentenv(["probe", url, "--level", "basic"]);
      const { code: seen, stdout } = await command.exited;
      computer.tell({});
      expect(seen).toBe(code);
      const [, passed, failed, unverified, others] =
        /: (\d+) passed, (\d+) failed, (\d+) unverified, (\d+) not applicable, at level basic in/.exec(stdout) ?? [];
      const lines = (mark: string) => stdout.split("\n").filter((line) => line.startsWith(`${mark} `)).length;
      expect([passed, failed, unverified, others].map(Number)).toEqual(["pass", "FAIL", "----", "n/a "].map(lines));
      expect(Number(failed) > 0).toBe(code === 1);
      expect(Number(passed)).toBeGreaterThan(50);
    }
  });

  it("exits with 2 where there is nothing to probe: nobody listens, or who does has no card", async () => {
    const other = createServer((_, response) => void response.writeHead(404).end());
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      for (const each of ["http://127.0.0.1:9", url]) {
        await using command = agentenv(["probe", each, "--level", "basic"]);
        const { code, stderr, stdout } = await command.exited;
        expect([code, stdout]).toEqual([2, ""]);
        expect(stderr).toContain(`${each} can't be used`);
      }
    } finally {
      await new Promise((resolve) => other.close(resolve));
    }
  });
});
