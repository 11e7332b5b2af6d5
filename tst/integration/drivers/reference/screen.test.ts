import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { imageBytes, type TestCaller } from "../../../fakes/computer-calls.js";
import { colourAt } from "../../../harness/picture.js";
import { ReferenceComputer } from "../../../harness/reference.js";
import { until } from "../../../harness/until.js";
import { XTestClient, type XTestWindow } from "../../../harness/x-client.js";
import { XServer } from "../../../harness/x-server.js";

let server: XServer;
let x: XTestClient;
let window: XTestWindow;
let computer: ReferenceComputer;
let agent: TestCaller;
beforeAll(async () => {
  server = await XServer.xvfb();
  x = await XTestClient.open(server.display);
  window = await x.window();
  computer = await ReferenceComputer.start(server.display);
  agent = computer.caller("agent");
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
  x?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

/** Paints a rectangle of the window in one colour, 0xRRGGBB. */
function paint(colour: number, [left, top, width, height] = [0, 0, 1280, 800]): void {
  const gc = x.client.AllocID();
  x.client.CreateGC(gc, window.id, { foreground: colour });
  x.client.PolyFillRectangle(window.id, gc, [left, top, width, height]);
  x.client.FreeGC(gc);
}

async function shot(by = agent, args = {}): Promise<{ png: Buffer; frame: string }> {
  const result = await by.call("computer_screenshot", args);
  return { png: imageBytes(result), frame: String(result.structuredContent?.frame_id) };
}

describe("a capture", () => {
  it("has the screen's colours, pixel by pixel", async () => {
    paint(0x102030);
    paint(0xff0000, [10, 10, 1, 1]);
    paint(0x00ff00, [11, 10, 1, 1]);
    paint(0x0000ff, [1279, 799, 1, 1]);
    await x.sync();
    const { png } = await shot();
    expect(await colourAt(png, 9, 10)).toBe(0x102030);
    expect(await colourAt(png, 10, 10)).toBe(0xff0000);
    expect(await colourAt(png, 11, 10)).toBe(0x00ff00);
    expect(await colourAt(png, 1279, 799)).toBe(0x0000ff);
  });

  it("of a screen on which nothing was drawn is the last one again, as a frame of its own", async () => {
    const capture = () => computer.driver.capture(new AbortController().signal);
    const first = await capture();
    expect(await capture()).toBe(first);
    const [one, two] = [await shot(), await shot()];
    expect(one.frame).not.toBe(two.frame);
    // Drawn on, with nothing to be seen of it.
    paint(0x00ff00, [11, 10, 1, 1]);
    await x.sync();
    expect((await shot()).png.equals(two.png)).toBe(true);
    paint(0x00fe00, [11, 10, 1, 1]);
    await x.sync();
    expect(await capture()).not.toBe(first);
  });

  it("never shows a state from before an input that the caller had an answer for, 500 times", async () => {
    // The application paints itself anew at each click, and the test knows when it has.
    let painted = 0;
    x.client.on("event", ({ name }: { name: string }) => {
      if (name !== "ButtonPress") return;
      painted += 1;
      paint(painted, [100, 100, 300, 300]);
    });
    await agent.frame();
    let stop = false;
    // Others capture all the time, as drivers share captures among those who ask at once; frames are too few for it.
    const others = [1, 2].map(async () => {
      while (!stop) await computer.driver.capture(new AbortController().signal);
    });
    try {
      for (let round = 1; round <= 500; round += 1) {
        await agent.ok("computer_click", { x: 200, y: 200 });
        await until(
          () => painted,
          (count) => count === round,
          { every: 0, what: `click ${round}` },
        );
        await x.sync();
        const { png } = await shot();
        expect(await colourAt(png, 200, 200)).toBe(round);
      }
    } finally {
      stop = true;
      await Promise.all(others);
    }
  }, 120_000);
});
