import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Section } from "./cua-driver.js";
import { BenchSession } from "./forwarding-client.js";
import { installPeers, type Peer, startPeers } from "./forwarding-peers.js";
import { type Contender, Orders, type Row, row, type Timing, timing } from "./measure.js";

const BLOCKS = 12;
/** How long each is called before anything is timed, so that programs that compile themselves as they run have done so. */
const FIRST_MS = 5_000;
/** Calls at the beginning of each turn that don't count. */
const WARM_UP = 50;
const CALLS = 100;
const SESSIONS = 32;
const LOAD_MS = 3_000;
const IDLE = 500;

/** A whole MCP server forwarded over HTTP, beside three others that do that. */
export async function benchForwarding(): Promise<Section[]> {
  await installPeers();
  const require = createRequire(import.meta.url);
  const everything = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
  const ours = join(dirname(fileURLToPath(import.meta.url)), "forwarding-server.js");
  const peers = await startPeers([process.execPath, everything, "stdio"], ours);
  try {
    return [
      { title: "forwarding: one call of echo", rows: await oneByOne(peers, (session) => session.echo(), 0.4) },
      {
        title: "forwarding: tools/list",
        rows: await oneByOne(peers, (session) => session.ask("tools/list", {}), 0.25),
      },
      { title: `forwarding: ms a call in all, ${SESSIONS} sessions at once`, rows: await together(peers) },
      { title: `forwarding: ${IDLE} idle sessions, KB each`, rows: [await idle(peers[0] as Peer)] },
    ];
  } finally {
    for (const peer of peers) await peer.close();
  }
}

async function oneByOne(peers: Peer[], run: (session: BenchSession) => Promise<unknown>, most: number): Promise<Row[]> {
  const sessions = await Promise.all(peers.map(({ url }) => BenchSession.open(url)));
  const contenders = sessions.map((session, index) => ({ name: peers[index]?.name ?? "", run: () => run(session) }));
  const timings = await takeBlocks(contenders);
  for (const session of sessions) session.close();
  const [own = "", ...others] = peers.map(({ name }) => name);
  const p50 = (name: string) => timings.get(name)?.p50 ?? Number.POSITIVE_INFINITY;
  const best = others.reduce((one, other) => (p50(other) < p50(one) ? other : one));
  return [row(timings, own, best, { most }), ...others.map((name) => row(timings, name))];
}

/**
 * Times the contenders in turns of some calls each: what is compared is a session in use, and a process that was left alone
 * for the others' calls first has to wake up. The first calls of a turn don't count.
 */
async function takeBlocks(contenders: readonly Contender[]): Promise<Map<string, Timing>> {
  const samples = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (const { run } of contenders)
    for (const end = performance.now() + FIRST_MS; performance.now() < end; ) await run();
  const orders = new Orders();
  for (let block = 0; block < BLOCKS; block += 1) {
    for (const { name, run } of orders.next(contenders)) {
      for (let call = -WARM_UP; call < CALLS; call += 1) {
        const started = performance.now();
        await run();
        if (call >= 0) samples.get(name)?.push(performance.now() - started);
      }
    }
  }
  return new Map([...samples].map(([name, times]) => [name, timing(name, times)]));
}

/** How many calls a second each takes from many sessions, in rounds by turns; said as the time that a call takes in all. */
async function together(peers: Peer[]): Promise<Row[]> {
  const perCall = new Map<string, number[]>(peers.map(({ name }) => [name, []]));
  const sessions = new Map<string, BenchSession[]>();
  for (const { name, url } of peers) {
    sessions.set(name, await Promise.all(Array.from({ length: SESSIONS }, () => BenchSession.open(url))));
  }
  for (let round = 0; round < 3; round += 1) {
    for (const { name } of peers) perCall.get(name)?.push(await load(sessions.get(name) ?? []));
  }
  for (const session of [...sessions.values()].flat()) session.close();
  const rows = peers.map(({ name }) => timing(name, perCall.get(name) ?? []));
  const [own, ...others] = rows;
  const best = others.reduce((one, other) => (other.p50 < one.p50 ? other : one));
  if (own === undefined) return rows;
  return [{ ...own, ratio: best.p50 / own.p50, against: `${best.name}, calls/s`, goal: { least: 4 } }, ...others];
}

/** Milliseconds a call, of all sessions together. */
async function load(sessions: BenchSession[]): Promise<number> {
  const started = performance.now();
  let calls = 0;
  await Promise.all(
    sessions.map(async (session) => {
      while (performance.now() - started < LOAD_MS) {
        await session.echo();
        calls += 1;
      }
    }),
  );
  return (performance.now() - started) / calls;
}

/** What a session costs that has listed the tools and called one, and is quiet now. */
async function idle({ url, pid }: Peer): Promise<Row> {
  const sessions: BenchSession[] = [];
  const open = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const session = await BenchSession.open(url);
      await session.ask("tools/list", {});
      await session.echo();
      sessions.push(session);
    }
  };
  await open(100);
  const before = await residentKb(pid);
  await open(IDLE);
  const each = ((await residentKb(pid)) - before) / IDLE;
  for (const session of sessions) session.close();
  const name = "an idle session of ours";
  return { name, p50: each, p95: each, count: IDLE, ratio: each / 100, against: "100 KB", goal: { most: 1 } };
}

async function residentKb(pid: number): Promise<number> {
  for (let collection = 0; collection < 3; collection += 1) {
    process.kill(pid, "SIGUSR2");
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
