import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/protocol/tool.js";
import type { Lie } from "../../fakes/lying.js";
import { about, LyingComputer } from "../../fakes/lying-computer.js";

let computer: LyingComputer;
beforeAll(async () => {
  computer = await LyingComputer.start();
});
afterAll(() => computer?.[Symbol.asyncDispose]());

/** A lie about commands whose script has this in it. */
function aboutCommand(
  script: string,
  run: (params: JsonObject, real: (params: JsonObject) => Promise<JsonObject>) => Promise<JsonObject>,
): Lie {
  return {
    extension: {
      "computer-exec/run": (params, real) =>
        String((params.argv as string[])[2]).includes(script) ? run(params, real) : real(params),
    },
  };
}

const scripted = (params: JsonObject, change: (script: string) => string): JsonObject => {
  const [sh, option, script = "", ...more] = params.argv as string[];
  return { ...params, argv: [sh, option, change(script), ...more] };
};

const never = new AbortController().signal;
let waits: Promise<unknown> = Promise.resolve();
const hidden = new Set<unknown>();

/** What is done, what the check begins with, and what it finds. */
const LIES: [what: string, lie: Lie, check: string, finding: RegExp][] = [
  [
    "holds the answer until the background is silent",
    aboutCommand("echo late", async (params, real) => {
      const answer = await real(params);
      await sleep(1_500);
      return answer;
    }),
    "a program in the background",
    /it was answered after \d+ ms, when the background had written/,
  ],
  [
    "kills the background with the answer",
    aboutCommand("echo late", async (params, real) => {
      const answer = await real(params);
      process.kill(Number(answer.stdout), "SIGKILL");
      return answer;
    }),
    "a program in the background",
    /the program in the background is gone/,
  ],
  [
    "closes the background's output with the answer",
    aboutCommand("echo late", (params, real) =>
      real(
        scripted(params, (script) =>
          script.replace("(sleep 2", "(exec >&-; sleep 2").replace("echo late", "echo late || exit"),
        ),
      ),
    ),
    "a program in the background",
    /the program in the background is gone/,
  ],
  [
    "leaves running what a late command had started",
    aboutCommand("sleep 47", (params, real) =>
      real(scripted(params, (script) => script.replace("sleep 47", "setsid sleep 7"))),
    ),
    "a command past its time",
    /what it had started still runs/,
  ],
  [
    "waits out what nobody waits for",
    about("computer_wait", async (name, args, call, real) => {
      const turn = waits.then(() => real(name, args, { ...call, signal: never }));
      waits = turn;
      return turn;
    }),
    "a wait that is let go",
    /timed out|more than 5 s/,
  ],
  [
    "lists a forwarded tool that is disabled",
    {
      list: (tools) => [
        ...tools.filter(({ name }) => name !== "far_look"),
        { name: "far_look", inputSchema: { type: "object" } },
      ],
    },
    "a forwarded tool that is disabled",
    /far_look is listed for the role from which it was hidden/,
  ],
  [
    "runs a forwarded tool that is disabled",
    about("far_look", async (name, args, call, real) => {
      const result = await real(name, args, call);
      return result?.isError ? { content: [] } : result;
    }),
    "a forwarded tool that is disabled",
    /it was not refused/,
  ],
  [
    "hides a forwarded tool from everybody once it is disabled for one",
    {
      extension: {
        "disable-tool/disable": async (params, real) => {
          for (const tool of params.tools as string[]) hidden.add(tool);
          return real(params);
        },
      },
      list: (tools) => tools.filter(({ name }) => !hidden.has(name)),
    },
    "a forwarded tool that is disabled",
    /far_look is hidden from another role too/,
  ],
];

describe("a server that", () => {
  it.each(LIES)(
    "%s is found out",
    async (_, told, name, finding) => {
      const [result, ...more] = await computer.probed(told, name);
      expect(more).toEqual([]);
      expect(result).toMatchObject({ status: "failed", detail: expect.stringMatching(finding) });
    },
    40_000,
  );
});
