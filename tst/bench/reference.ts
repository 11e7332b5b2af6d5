import { readFileSync } from "node:fs";
import { type Computer, startComputer } from "../harness/computer.js";
import { PublishedReference } from "../harness/published-reference.js";
import { XTestClient } from "../harness/x-client.js";
import { RawMcp } from "./clients.js";
import type { Section } from "./cua-driver.js";
import { type Contender, type Row, row, takeTurns } from "./measure.js";

const OURS = "ours";
const PEER = "the Python reference driver";
const RATE_MS = 4_000;

/** The reference driver beside the published Python one, on the same display, in turns. */
export async function benchReference(): Promise<Section[]> {
  return [...(await beside(both)), ...(await beside(async (lab) => [await memory(lab)]))];
}

/** Both drivers, just started, on one display. */
interface Lab {
  readonly computer: Computer;
  readonly peer: PublishedReference;
  readonly painter: Painter;
}

async function beside(measure: (lab: Lab) => Promise<Section[]>): Promise<Section[]> {
  await using computer = await startComputer("bundles/reference");
  await using peer = await PublishedReference.start(computer.display);
  using painter = await Painter.open(computer);
  return await measure({ computer, peer, painter });
}

async function both(lab: Lab): Promise<Section[]> {
  const ours = await RawMcp.open(lab.computer.mcp);
  const theirs = await RawMcp.open(`${lab.peer.url}/mcp`);
  try {
    return [...(await calls(ours, theirs, lab.painter)), await rates(lab)];
  } finally {
    await ours.close();
    await theirs.close();
  }
}

/** A window that changes whenever it is told to, so that no two screenshots are the same. */
class Painter implements Disposable {
  #colour = 0;

  private constructor(
    private readonly x: XTestClient,
    private readonly window: number,
    private readonly gc: number,
  ) {}

  static async open(computer: Computer): Promise<Painter> {
    await computer.run("sh", "-c", "setsid xterm -geometry 80x24+500+300 -e 'ls -l /usr/bin; cat' >/dev/null 2>&1 & :");
    const x = await XTestClient.open(computer.display);
    const [window, gc] = [x.client.AllocID(), x.client.AllocID()];
    x.client.CreateWindow(window, x.root, 1100, 20, 160, 120, 0, 0, 0, 0, { overrideRedirect: true });
    x.client.MapWindow(window);
    x.client.CreateGC(gc, window, {});
    await x.sync();
    return new Painter(x, window, gc);
  }

  async paint(): Promise<void> {
    this.#colour = (this.#colour + 1) & 0xffffff;
    this.x.client.ChangeGC(this.gc, { foreground: this.#colour });
    this.x.client.PolyFillRectangle(this.window, this.gc, [0, 0, 160, 120]);
    await this.x.sync();
  }

  [Symbol.dispose](): void {
    this.x[Symbol.dispose]();
  }
}

async function calls(ours: RawMcp, theirs: RawMcp, painter: Painter): Promise<Section[]> {
  const section = async (
    title: string,
    run: (mcp: RawMcp) => Promise<unknown>,
    most: number,
    rounds: number,
    before: () => Promise<void> = async () => {},
  ) => {
    const contenders: Contender[] = [
      { name: OURS, before, run: () => run(ours) },
      { name: PEER, before, run: () => run(theirs) },
    ];
    // As many calls first as are timed: programs that compile themselves as they run have done so by then.
    const timings = await takeTurns(contenders, rounds, rounds);
    return { title, rows: [row(timings, OURS, PEER, { most }), row(timings, PEER)] };
  };
  const paint = () => painter.paint();
  const shot = (args: object) => (mcp: RawMcp) => mcp.tool("computer_screenshot", args);
  await ours.tool("computer_screenshot");
  await theirs.tool("computer_screenshot");
  return [
    await section("screenshot, PNG, of a screen that changed", shot({}), 0.25, 100, paint),
    await section("screenshot, JPEG, of a screen that changed", shot({ format: "jpeg" }), 0.25, 100, paint),
    await section("screenshot, PNG, of a screen that didn't change", shot({}), 0.06, 100),
    await section("click", (mcp) => mcp.tool("computer_click", { x: 1150, y: 60 }), 0.35, 300),
    await section("computer_wait 0", (mcp) => mcp.tool("computer_wait", { ms: 0 }), 0.6, 500),
  ];
}

async function rates({ computer, peer, painter }: Lab): Promise<Section> {
  const rows: Row[] = [];
  for (const [what, sessions, least, call] of [
    ["screenshots/s from 8 sessions", 8, 4, (mcp: RawMcp) => mcp.tool("computer_screenshot")],
    ["calls/s from 32 sessions", 32, 2.5, (mcp: RawMcp) => mcp.tool("computer_wait", { ms: 0 })],
  ] as const) {
    const painting = setInterval(() => void painter.paint(), 5);
    try {
      const theirs = await rate(`${peer.url}/mcp`, sessions, call);
      const own = await rate(computer.mcp, sessions, call);
      rows.push(
        {
          ...asRow(`${OURS}: ${Math.round(own)} ${what}`, 1000 / own),
          ratio: own / theirs,
          against: PEER,
          goal: { least },
        },
        asRow(`${PEER}: ${Math.round(theirs)}`, 1000 / theirs),
      );
    } finally {
      clearInterval(painting);
    }
  }
  return { title: "rates, with the screen changing every 5 ms (ms a call)", rows };
}

/** Calls a second from so many sessions at once. */
async function rate(url: string, sessions: number, call: (mcp: RawMcp) => Promise<unknown>): Promise<number> {
  const all = await Promise.all(Array.from({ length: sessions }, () => RawMcp.open(url)));
  for (const mcp of all) await call(mcp);
  const started = performance.now();
  let done = 0;
  await Promise.all(
    all.map(async (mcp) => {
      while (performance.now() - started < RATE_MS) {
        await call(mcp);
        done += 1;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  await Promise.all(all.map((mcp) => mcp.close()));
  return done / seconds;
}

async function memory({ computer, peer, painter }: Lab): Promise<Section> {
  const after = async (url: string, pid: number): Promise<[early: number, late: number]> => {
    const mcp = await RawMcp.open(url);
    let early = 0;
    for (let taken = 1; taken <= 1000; taken += 1) {
      await painter.paint();
      await mcp.tool("computer_screenshot");
      if (taken === 200) early = resident(pid);
    }
    await mcp.close();
    return [early, resident(pid)];
  };
  const theirs = await after(`${peer.url}/mcp`, peer.pid);
  const own = await after(computer.mcp, computer.pid);
  return {
    title: "memory after 1,000 screenshots (MB resident)",
    rows: [
      { ...asRow(OURS, own[1]), ratio: own[1] / theirs[1], against: PEER, goal: { most: 1.8 } },
      {
        ...asRow(`${OURS}, growth since the 200th`, own[1] - own[0]),
        ratio: (own[1] - own[0]) / 5,
        against: "5 MB",
        goal: { most: 1 },
      },
      asRow(PEER, theirs[1]),
    ],
  };
}

function resident(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

function asRow(name: string, value: number): Row {
  return { name, p50: value, p95: value, count: 1 };
}
