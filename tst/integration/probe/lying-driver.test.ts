import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Capture } from "../../../src/computer/operations.js";
import { CHECKS } from "../../../src/probe/checks/list.js";
import { runProbe } from "../../../src/probe/run.js";
import type { JsonObject } from "../../../src/protocol/tool.js";
import { type Lie, saying } from "../../fakes/lying.js";
import { about, taking } from "../../fakes/lying-computer.js";
import { agentenv } from "../../harness/computer.js";
import { LyingReference } from "../../harness/lying-reference.js";
import { until } from "../../harness/until.js";

let computer: LyingReference;
beforeAll(async () => {
  computer = await LyingReference.start();
});
afterAll(() => computer?.[Symbol.asyncDispose]());

let kept: Capture | undefined;
const never = new AbortController().signal;

/** What is done, the check that it breaks, and what the check finds. */
const LIES: [what: string, lie: Lie, check: string, finding: RegExp][] = [
  [
    "clicks a cell beside the one that was meant",
    taking("computer_click", (args) => ({ ...args, x: Number(args.x) + 44 })),
    "a click in frame space",
    /the fixture shows {.*"2,4"/,
  ],
  [
    "says that it clicked and doesn't",
    about("computer_click", (_, { x, y, ...args }, __, real) =>
      real("computer_pointer_move", { x, y, ...movable(args) }),
    ),
    "a click in norm space",
    /the fixture shows/,
  ],
  [
    "takes a crop's points for the screen's",
    taking("computer_click", ({ frame_id: _, ...args }) => args),
    "a click in a crop",
    /the fixture shows/,
  ],
  [
    "is a pixel off at the far edge",
    taking("computer_click", (args) =>
      args.space === "norm" ? { ...args, x: Number(args.x) * 0.997, y: Number(args.y) * 0.997 } : args,
    ),
    "the norm grid's far edge",
    /1000 of 1000 came to/,
  ],
  [
    "presses the left button for each",
    taking("computer_click", (args) => ({ ...args, button: "left" })),
    "each button of the card",
    /what came of (right|middle)/,
  ],
  [
    "clicks once for a triple click",
    taking("computer_click", (args) => ({ ...args, count: 1 })),
    "a double and a triple click",
    /the fixture shows/,
  ],
  [
    "forgets modifiers",
    taking("computer_click", ({ modifiers: _, ...args }) => args),
    "modifiers are down for their click",
    /Control at the two presses is \[false,false\]/,
  ],
  [
    "types ASCII alone",
    taking("computer_type", (args) => ({ ...args, text: String(args.text).replaceAll(/[^ -~]/g, "?") })),
    "Unicode in both cases",
    /the fixture shows "Hello, W\?rld!/,
  ],
  [
    "types small letters alone",
    taking("computer_type", (args) => ({ ...args, text: String(args.text).toLowerCase() })),
    "Unicode in both cases",
    /the fixture shows "hello/,
  ],
  [
    "presses a repeated key once",
    taking("computer_key", (args) => ({ ...args, repeat: 1 })),
    "a repeated key",
    /the fixture shows "abc"/,
  ],
  [
    "presses a chord's keys one by one",
    about("computer_key", async (name, args, _, real) => {
      const keys = args.keys as string[];
      for (const key of keys.slice(0, -1)) await real(name, { keys: [key] });
      return real(name, { keys: keys.slice(-1) });
    }),
    "a chord is pressed in order",
    /what came is/,
  ],
  [
    "scrolls the other way",
    taking("computer_scroll", (args) => ({ ...args, direction: args.direction === "left" ? "right" : args.direction })),
    "scrolls up, down, left and right",
    /the fixture shows .*"left":0/,
  ],
  [
    "drags straight to the end",
    taking("computer_drag", (args) => ({
      ...args,
      path: [(args.path as unknown[])[0], (args.path as unknown[]).at(-1)],
    })),
    "a drag goes from where it begins",
    /it passed 180,90 \d+ pixels away/,
  ],
  [
    "lets go of held keys at once",
    taking("computer_keyboard_down", (args) => ({ ...args, hold_ms: 0 })),
    "a held key stays down",
    /failed: invalid_argument|the fixture shows/,
  ],
  [
    "acts on what it refuses",
    about("computer_click", async (name, args, _, real) => {
      const result = await real(name, args);
      if (result?.isError) await real(name, { x: 100, y: 300, space: "frame" });
      return result;
    }),
    "what is refused leaves the fixture as it was",
    /what came after/,
  ],
  ["shows an old screen", {}, "a click in frame space", /the frames show #[0-9a-f]{6} there, not/],
  [
    "counts nobody else's input",
    about("computer_click", async (name, args, _, real) => saying(await real(name, args), { others_since_frame: 0 })),
    "input of others since a frame",
    /is \[0,0,0,0\], not \[0,1,1,2\]/,
  ],
  [
    "sends calls in an order of its own",
    about("computer_click", async (name, args, _, real) => {
      // The first hundreds of milliseconds come last.
      if (Number(args.y) < 240) await sleep(1_000);
      return real(name, args);
    }),
    "50 calls at once",
    /landed before click \d+, which was sent much earlier/,
  ],
  [
    "loses a call of many",
    about("computer_click", async (name, args, _, real) =>
      Number(args.x) > 400 && Number(args.y) > 300 ? saying({ content: [] }, { applied: "yes" }) : real(name, args),
    ),
    "50 calls at once",
    /the fixture shows/,
  ],
  [
    "sends what was let go while it waited",
    about("computer_click", (name, args, call, real) => real(name, args, { ...call, signal: never })),
    "input that is let go",
    /3 clicks arrived, and the one that was let go is among them/,
  ],
];

/** The arguments of a click that a move takes too. */
function movable({ button: _, count: __, modifiers: ___, ...args }: JsonObject): JsonObject {
  return args;
}

const honest = [...new Set(LIES.map(([, , check]) => check))];

describe("an honest driver", () => {
  it("passes the checks that the others fail", async () => {
    const results = await computer.probed({}, ...honest);
    expect(results.filter(({ status }) => status !== "passed")).toEqual([]);
  });
});

describe("a driver that", () => {
  it.each(LIES)("%s is found out", async (what, told, name, finding) => {
    const { driver } = computer;
    const capture = driver.capture.bind(driver);
    if (what === "shows an old screen") {
      driver.capture = async (signal) => {
        kept ??= await capture(signal);
        return kept;
      };
    }
    try {
      const [result] = await computer.probed(told, name);
      expect(result).toMatchObject({ status: "failed", detail: expect.stringMatching(finding) });
    } finally {
      driver.capture = capture;
    }
  });
});

describe("a probe that is interrupted", () => {
  it("takes its fixture away and throws its reason", async () => {
    const interrupted = new AbortController();
    const seen: string[] = [];
    const probe = runProbe(computer.serving.url, {
      level: "full",
      checks: CHECKS.filter(({ level }) => level === "full"),
      signal: interrupted.signal,
      onResult: ({ name }) => {
        seen.push(name);
        interrupted.abort(new Error("enough"));
      },
    });
    await expect(probe).rejects.toThrow("enough");
    expect(seen).toHaveLength(1);
    await until(left, (seen) => seen === "0\n");
  });

  it("does so from the command line too, and exits as what a signal ended", async () => {
    await using command = agentenv(["probe", computer.serving.url]);
    await until(
      () => command.stdout,
      (seen) => seen.includes("P4 "),
      { ms: 30_000 },
    );
    await until(left, (seen) => seen.endsWith("\n1\n"));
    command.child.kill("SIGINT");
    expect((await command.exited).code).toBe(130);
    await until(left, (seen) => seen === "0\n");
  });

  it("leaves nothing behind when it ends by itself either", async () => {
    await computer.probed({}, "a button and a checkbox");
    await until(left, (seen) => seen === "0\n");
  });
});

describe("a fixture that can't be staged", () => {
  it("leaves the full checks unverified, with the reason", async () => {
    const [result] = await computer.probed(
      { extension: { "computer-exec/run": (params, real) => real(withoutPython(params)) } },
      "a button and a checkbox",
    );
    expect(result).toMatchObject({ status: "unverified", detail: expect.stringContaining("window didn't come up") });
  });
});

function withoutPython(params: JsonObject): JsonObject {
  const argv = (params.argv as string[]).map((each) => each.replace("python3", "no-such-python"));
  return { ...params, argv };
}

/** What is in the session user's home, and how many of its fixtures run. */
async function left(): Promise<string> {
  const argv = ["sh", "-c", 'ls -A; ps -eo args | grep -c "[b]oard.py $HOME"'];
  const response = await fetch(`${computer.serving.url}/agentenv/ext/computer-exec/run`, {
    method: "POST",
    body: JSON.stringify({ argv, request_id: crypto.randomUUID() }),
  });
  return String(((await response.json()) as JsonObject).stdout);
}
