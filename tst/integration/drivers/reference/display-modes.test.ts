import { describe, expect, it } from "vitest";
import { imageBytes } from "../../../fakes/computer-calls.js";
import { colourAt } from "../../../harness/picture.js";
import { ReferenceComputer } from "../../../harness/reference.js";
import { until } from "../../../harness/until.js";
import { XTestClient } from "../../../harness/x-client.js";
import { XServer } from "../../../harness/x-server.js";

const START = [1280, 800] as const;
type Size = readonly [width: number, height: number];

/** Each kind of server, the largest of its modes, and how many it has at least. */
const SERVERS: [
  name: string,
  start: (stack: AsyncDisposableStack) => Promise<XServer>,
  largest: Size,
  least: number,
][] = [
  ["Xvfb, which can shrink alone", async (stack) => stack.use(await XServer.xvfb()), START, 5],
  [
    "Xephyr, which can grow",
    async (stack) => stack.use(await XServer.xephyr(stack.use(await XServer.xvfb()))),
    [1600, 1200],
    15,
  ],
  ["Xorg, which has outputs", async (stack) => stack.use(await XServer.xorg()), [1920, 1080], 15],
];

function modesOnCard({ application }: ReferenceComputer): Size[] {
  const { extensions } = JSON.parse(application.cardJson()).capabilities;
  return extensions.find(({ uri }: { uri: string }) => uri === "urn:agentenv:computer-display/v1").params.modes;
}

async function shot(computer: ReferenceComputer, agent = computer.caller()) {
  const result = await agent.call("computer_screenshot", {});
  return { id: String(result.structuredContent?.frame_id), png: imageBytes(result), seen: result.structuredContent };
}

/** Paints the screen itself, where no window is. */
async function paint(x: XTestClient, colour: number): Promise<void> {
  const gc = x.client.AllocID();
  x.client.CreateGC(gc, x.root, { foreground: colour });
  x.client.PolyFillRectangle(x.root, gc, [0, 0, 4096, 4096]);
  x.client.FreeGC(gc);
  await x.sync();
}

describe.each(SERVERS)("%s", (_name, start, largest, least) => {
  it("is set to each mode of its card: captures, points and their bounds go with it, and frames from before are stale", async () => {
    await using stack = new AsyncDisposableStack();
    const server = await start(stack);
    const computer = stack.use(await ReferenceComputer.start(server.display));
    const x = stack.use(await XTestClient.open(server.display));
    const modes = modesOnCard(computer);
    expect(modes[0]).toEqual(largest);
    expect(modes.length).toBeGreaterThanOrEqual(least);
    expect(new Set(modes.map(String)).size).toBe(modes.length);
    const agent = computer.caller();
    let [oldWidth, oldHeight]: Size = START;
    for (const [index, [width, height]] of [...modes, START].entries()) {
      const before = await shot(computer, agent);
      await computer.set("computer-display", { width, height });
      await paint(x, 0x100000 + index);
      const { png, seen } = await shot(computer, agent);
      expect(seen).toMatchObject({ width, height, display: { width, height, scale: 1 } });
      expect(await colourAt(png, width - 1, height - 1)).toBe(0x100000 + index);
      await agent.ok("computer_click", { x: width - 1, y: height - 1 });
      const { screen } = await agent.ok("computer_pointer_position", {});
      expect(screen).toEqual({ x: width - 1, y: height - 1 });
      expect(await agent.refusal("computer_click", { x: width, y: 1 })).toEqual(["out_of_bounds", "no"]);
      if (oldWidth !== width || oldHeight !== height) {
        const named = { x: 1, y: 1, frame_id: before.id };
        expect(await agent.refusal("computer_click", named)).toEqual(["stale_frame", "no"]);
      }
      [oldWidth, oldHeight] = [width, height];
    }
    for (const [params, code] of [
      [{ width: 1280, height: 800, scale: 2 }, "unsupported"],
      [{ width: 1281, height: 800 }, "invalid_argument"],
    ] as const) {
      await expect(computer.set("computer-display", params)).rejects.toMatchObject({ code });
    }
  });

  it("that somebody else sets makes frames from before stale all the same", async () => {
    await using stack = new AsyncDisposableStack();
    const server = await start(stack);
    const computer = stack.use(await ReferenceComputer.start(server.display));
    const agent = computer.caller();
    const before = await shot(computer, agent);
    const someone = stack.use(await ReferenceComputer.start(server.display));
    await someone.set("computer-display", { width: 800, height: 600 });
    await until(
      () => agent.call("computer_click", { x: 1, y: 1, frame_id: before.id }),
      ({ structuredContent }) => structuredContent?.code === "stale_frame",
      { ms: 1_000, what: "a stale frame" },
    );
    expect((await shot(computer, agent)).seen).toMatchObject({ width: 800, height: 600 });
  });
});

describe("Xorg with several outputs", () => {
  it("is set through the one that shows the screen, whichever that is", async () => {
    await using server = await XServer.xorg();
    await server.run("xrandr", "--addmode", "DUMMY1", "1280x720");
    await server.run("xrandr", "--output", "DUMMY0", "--off", "--output", "DUMMY1", "--mode", "1280x720");
    await using computer = await ReferenceComputer.start(server.display);
    expect(modesOnCard(computer)).toContainEqual([1024, 768]);
    await computer.set("computer-display", { width: 1024, height: 768 });
    expect((await shot(computer)).seen).toMatchObject({ width: 1024, height: 768 });
  });

  it("that show it together has the one mode that it is in", async () => {
    await using server = await XServer.xorg();
    await using alone = await ReferenceComputer.start(server.display);
    await server.run("xrandr", "--addmode", "DUMMY1", "640x480");
    await server.run("xrandr", "--output", "DUMMY1", "--mode", "640x480", "--right-of", "DUMMY0");
    await using computer = await ReferenceComputer.start(server.display);
    expect(modesOnCard(computer)).toEqual([[1920, 800]]);
    await computer.set("computer-display", { width: 1920, height: 800 });
    // What was a mode once is refused now, and leaves the screen as it is.
    await expect(alone.set("computer-display", { width: 800, height: 600 })).rejects.toMatchObject({
      code: "unsupported",
    });
    expect((await shot(computer)).seen).toMatchObject({ width: 1920, height: 800 });
  });
});
