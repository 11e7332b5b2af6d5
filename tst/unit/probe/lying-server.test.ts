import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/protocol/tool.js";
import { type Lie, refusing, saying } from "../../fakes/lying.js";
import { about, LyingComputer, taking } from "../../fakes/lying-computer.js";

let computer: LyingComputer;
beforeAll(async () => {
  computer = await LyingComputer.start();
});
afterAll(() => computer?.[Symbol.asyncDispose]());

/** Refusals that are said in another way. */
const refusingAs = (change: JsonObject, text?: string): Lie => ({
  call: async (name, args, _, real) => {
    const result = await real(name, args);
    if (result?.isError !== true) return result;
    const content = text === undefined ? result.content : [{ type: "text" as const, text }];
    return { ...saying(result, change), content };
  },
});

const shifted = ([x0, y0, x1, y1]: number[], by: number) => [x0, y0, x1, y1].map((each) => (each ?? 0) + by);

let firstFrame: unknown;
const order: unknown[] = [];

/** What is said, what the check begins with, and what it finds. */
const LIES: [what: string, lie: Lie, check: string, finding: RegExp][] = [
  [
    "it is ready though a check failed",
    {
      extension: {
        "computer-ready/status": async () => ({
          ready: true,
          checks: [{ name: "display", ok: false, detail: "gone" }],
        }),
      },
    },
    "computer-ready says that it is ready",
    /ready is true, and 1 of 1 checks failed/,
  ],
  [
    "a frame is wider than its image",
    about("computer_screenshot", async (name, args, _, real) => saying(await real(name, args), { width: 201 })),
    "a screenshot is native",
    /the image's size is \[200,160\], not \[201,160\]/,
  ],
  [
    "every screenshot is the same frame",
    about("computer_screenshot", async (name, args, _, real) => saying(await real(name, args), { frame_id: "f1" })),
    "each screenshot is a new frame",
    /the frames are f1, f1/,
  ],
  [
    "a JPEG is a PNG",
    taking("computer_screenshot", ({ format: _, quality: __, ...args }) => args),
    "format jpeg",
    /"image\/png"/,
  ],
  [
    "a crop begins a pixel too far",
    taking("computer_screenshot", (args) =>
      Array.isArray(args.region) ? { ...args, region: shifted(args.region, 1) } : args,
    ),
    "a region is a native crop",
    /isn't its frame's/,
  ],
  [
    "a crop of a crop is cut from the screen",
    about("computer_screenshot", async (name, args, _, real) => {
      const result = await real(name, args.region === undefined ? args : { ...args, frame_id: firstFrame });
      if (args.region === undefined) firstFrame = result?.structuredContent?.frame_id;
      return args.region === undefined ? result : saying(result, { parent_frame_id: args.frame_id });
    }),
    "a crop of a crop",
    /isn't its frame's/,
  ],
  [
    "a region is rounded to the nearest pixels",
    taking("computer_screenshot", (args) =>
      Array.isArray(args.region) && args.space === "frame" ? { ...args, region: args.region.map(Math.round) } : args,
    ),
    "a region begins at the pixel it begins in",
    /the size of \[10, 20, 13, 23\] is \[2,2\]/,
  ],
  [
    "norm points are divided first and multiplied then",
    taking("computer_screenshot", (args) =>
      args.space === "norm" && args.norm_scale === 1000 && Array.isArray(args.region)
        ? { ...args, space: "frame", region: args.region.map((each) => (each / 1000) * 100) }
        : args,
    ),
    "a region begins at the pixel it begins in",
    /the size of \[29, 29, 100, 100\]/,
  ],
  [
    "63 frames are kept",
    about("computer_screenshot", async (name, args, _, real) => {
      if (args.frame_id !== undefined && order.slice(0, -63).includes(args.frame_id)) return refusing("stale_frame");
      const result = await real(name, args);
      order.push(result?.structuredContent?.frame_id);
      return result;
    }),
    "the last 64 frames are kept",
    /computer_screenshot .* failed: stale_frame/,
  ],
  [
    "frames are kept without end",
    about("computer_screenshot", async (name, args, _, real) => {
      const result = await real(name, args);
      return result?.isError ? real(name, { ...args, frame_id: undefined }) : result;
    }),
    "the last 64 frames are kept",
    /it was not refused/,
  ],
  [
    "a point outside is moved to the edge",
    taking("computer_click", (args) => ({ ...args, x: Math.min(Number(args.x), 199) })),
    "a point outside the frame",
    /it was not refused/,
  ],
  [
    "an unknown frame is taken for the latest",
    taking("computer_click", ({ frame_id: _, ...args }) => args),
    "an unknown frame",
    /it was not refused/,
  ],
  [
    "ctrl is taken for Control",
    taking("computer_key", (args) => ({
      ...args,
      keys: (args.keys as string[]).map((key) => key.replace("ctrl", "Control")),
    })),
    "a key as models spell it",
    /it was not refused/,
  ],
  [
    "control characters are left out of a text",
    taking("computer_type", (args) => ({ ...args, text: String(args.text).replace("\u001b", "") })),
    "a control character in a text",
    /it was not refused/,
  ],
  [
    "a refusal has another code",
    refusingAs({ code: "internal" }),
    "an unknown frame",
    /refused internal, not stale_frame/,
  ],
  [
    "a refusal doesn't know whether it was applied",
    refusingAs({ applied: "unknown" }),
    "an unknown frame",
    /refused with applied "unknown", not "no"/,
  ],
  ["a refusal's text has no code", refusingAs({}, "sorry"), "an unknown frame", /the text is "sorry"/],
  ["a hint names no key", refusingAs({ hint: "another key" }), "a key as X spells it", /hint doesn't name Enter/],
  [
    "a wait may be longer than the card says",
    taking("computer_wait", () => ({ ms: 0 })),
    "a longer wait than the card says",
    /it was not refused/,
  ],
  [
    "a tool is listed without the schema of its answer",
    { list: (tools) => tools.map(({ outputSchema: _, ...tool }) => tool) },
    "the seven tools are listed",
    /without both schemas/,
  ],
  [
    "a group is half there",
    { list: (tools) => tools.filter(({ name }) => name !== "computer_pointer_up") },
    "each group's tools",
    /computer-pointer\/v1/,
  ],
  [
    "a tool is listed that isn't on the card",
    { list: (tools) => [...tools, { name: "computer_guess", inputSchema: { type: "object" } }] },
    "every listed tool is on the card",
    /computer_guess is not on the card/,
  ],
  [
    "a click only reads",
    { list: (tools) => tools.map((tool) => ({ ...tool, annotations: { readOnlyHint: true } })) },
    "what reads and what acts",
    /readOnlyHint of computer_click is true/,
  ],
  [
    "the display is another one than that of the frames",
    { extension: { "computer-display/get": async (params, real) => ({ ...(await real(params)), width: 640 }) } },
    "computer-display get says what frames say",
    /the display is/,
  ],
  [
    "the display is set to whatever is asked for",
    { extension: { "computer-display/set": async () => ({}) } },
    "computer-display set refuses",
    /it was not refused/,
  ],
  [
    "a frame of another display is taken for the latest",
    about("computer_click", async (name, { frame_id: _, ...args }, __, real) => {
      await real("computer_screenshot", {});
      return real(name, args);
    }),
    "frames from before a change of the display",
    /it was not refused/,
  ],
  [
    "the default space is kept to itself",
    { extension: { "computer-spaces/set": async (params) => params } },
    "computer-spaces set changes the default",
    /the default is "frame", not "norm"/,
  ],
  [
    "the default space doesn't hold for calls",
    taking("computer_screenshot", (args) => ({ space: "frame", ...args })),
    "points of a call that names no space",
    /the size of a half is \[10,5\]/,
  ],
  [
    "any keyboard setting is taken",
    { extension: { "computer-keyboard/set": async () => ({}) } },
    "computer-keyboard refuses",
    /it was not refused/,
  ],
  [
    "every command went well",
    { extension: { "computer-exec/run": async (params, real) => ({ ...(await real(params)), exit_code: 0 }) } },
    "a command's exit code",
    /exit_code is 0, not 3/,
  ],
  [
    "a repeated command runs again",
    { extension: { "computer-exec/run": (params, real) => real({ ...params, request_id: crypto.randomUUID() }) } },
    "a repeated request_id",
    /the answer of the one that joined/,
  ],
  [
    "cut output is whole",
    { extension: { "computer-exec/run": async (params, real) => ({ ...(await real(params)), truncated: false }) } },
    "output past max_output_bytes",
    /\[1048576,false\], not \[1048576,true\]/,
  ],
  [
    "a missing program has the shell's code",
    {
      extension: {
        "computer-exec/run": (params, real) =>
          real({ ...params, argv: ["sh", "-c", '"$0"', ...(params.argv as string[])] }),
      },
    },
    "a program that isn't there",
    /it was not refused: .*127/,
  ],
  [
    "the skill has another name than its text",
    { extension: { "skill/get": async (params, real) => ({ ...(await real(params)), name: "other" }) } },
    "its skill keeps the rules",
    /names the skill "computer", but it comes as "other"/,
  ],
  [
    "the skill has other text than MCP's",
    {
      extension: {
        "skill/get": async (params, real) => {
          const skill = await real(params);
          return { ...skill, content: `${skill.content}more\n` };
        },
      },
    },
    "its skill is listed over MCP",
    /what it lists is/,
  ],
  [
    "a tool that is disabled is listed",
    { list: (tools) => [...tools.filter(({ name }) => name !== "computer_wait"), { name: "computer_wait" }] },
    "a tool that is disabled for a role",
    /computer_wait is listed for the role from which it was hidden/,
  ],
  [
    "a tool that is disabled can be called",
    about("computer_wait", (name, args, call, real) => real(name, args, { ...call, role: undefined })),
    "a tool that is disabled for a role",
    /it was not refused/,
  ],
  [
    "the pointer is where it was sent, and no further",
    taking("computer_pointer_move", (args) => (args.space === "norm" ? { ...args, x: 990, y: 990 } : args)),
    "the norm grid's far corner",
    /its position is \[198,158,true\], not \[199,159,true\]/,
  ],
  [
    "the pointer is told in pixels of the screen",
    about("computer_pointer_position", async (name, args, _, real) => {
      const result = await real(name, args);
      return saying(result, result?.structuredContent?.screen as JsonObject);
    }),
    "the pointer goes where it is sent",
    /beside a crop is/,
  ],
];

describe("an honest server", () => {
  it("passes each basic check that applies to it, and its report counts for its extensions", async () => {
    const results = await computer.probed({});
    expect(results.filter(({ status }) => status === "failed" || status === "unverified")).toEqual([]);
    expect(results.filter(({ status }) => status === "passed").length).toBeGreaterThan(65);
    expect(results.filter(({ difference }) => difference)).toEqual([]);
  }, 40_000);
});

describe("a server that says that", () => {
  it.each(LIES)("%s is found out", async (_, told, name, finding) => {
    const [result, ...more] = await computer.probed(told, name);
    expect(more).toEqual([]);
    expect(result).toMatchObject({ status: "failed", detail: expect.stringMatching(finding) });
  });
});

describe("a server that takes all sessions for one caller", () => {
  it("does otherwise than ours, and is told so without failing", async () => {
    let latest: unknown;
    const shared = about("computer_screenshot", async (name, args, _, real) => {
      const result = await real(name, args.region === undefined ? args : { frame_id: latest, ...args });
      latest = result?.structuredContent?.frame_id;
      return result;
    });
    const [result] = await computer.probed(shared, "each session has a latest frame of its own");
    expect(result).toMatchObject({ status: "not_applicable", difference: true });
  });
});
