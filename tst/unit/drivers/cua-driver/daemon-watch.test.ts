import { expect, onTestFinished, test } from "vitest";
import { DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { DaemonWatch } from "../../../../drivers/cua-driver/daemon-watch.js";
import type { RunningService } from "../../../../src/computer/session.js";
import { FakeLog } from "../../../fakes/computer-session.js";
import { FakeCuaDaemon } from "../../../fakes/cua-daemon.js";
import { until } from "../../../harness/until.js";

/** A daemon, its client whose deadlines are short, and a watch on a service that only counts its restarts. */
async function start(service: Partial<RunningService> = {}) {
  const daemon = await FakeCuaDaemon.start();
  const log = new FakeLog();
  const restarts: string[] = [];
  const client: DaemonClient = new DaemonClient({
    socketPath: daemon.socketPath,
    log,
    deadlines: { call: 30, metadata: 400 },
    onDeadline: (what) => void watch.missed(what),
  });
  const watch = new DaemonWatch(client, log);
  const running = {
    name: "cua-driver",
    pid: 4242,
    state: "up",
    lastLines: [],
    restart: (reason: string) => void restarts.push(reason),
    ...service,
  } as RunningService;
  watch.watch(running);
  onTestFinished(async () => {
    client.close();
    await daemon[Symbol.asyncDispose]();
  });
  const miss = async () => {
    await expect(client.call("click", {}, { reads: false }).reply).rejects.toMatchObject({ code: "timeout" });
    await watch.missed("click");
  };
  return { daemon, log, restarts, running, miss, watch };
}

test("a daemon that misses a deadline and then doesn't answer metadata is restarted once, with the reason", async () => {
  const { daemon, restarts, miss } = await start();
  daemon.behaviour = () => "hang";
  daemon.hangs = true;
  await Promise.all([miss(), miss(), miss()]);
  expect(restarts).toEqual([
    "click missed its deadline, and then metadata failed too: cua-driver didn't answer metadata within 400 ms",
  ]);
});

test("a daemon that misses a deadline and answers metadata goes on", async () => {
  const { daemon, log, restarts, miss } = await start();
  daemon.behaviour = () => "hang";
  await miss();
  expect(restarts).toEqual([]);
  expect(log.lines.map(({ message }) => message)).toContain("cua-driver answers: it isn't restarted");
});

test("a daemon that is gone, is another by now, or is still starting isn't restarted by the watch", async () => {
  const gone = await start();
  await gone.daemon.die();
  await gone.watch.missed("click");
  expect(gone.restarts).toEqual([]);

  const other = await start();
  other.daemon.behaviour = () => "hang";
  other.daemon.hangs = true;
  const looked = other.miss();
  await until(() => other.daemon.requests.some(({ method }) => method === "metadata"));
  Object.assign(other.running, { pid: 4243 });
  await looked;
  expect(other.restarts).toEqual([]);

  const starting = await start({ state: "starting" });
  starting.daemon.behaviour = () => "hang";
  starting.daemon.hangs = true;
  await starting.miss();
  expect(starting.restarts).toEqual([]);
});

test("a daemon that lives and whose socket is gone is restarted, one that died meanwhile isn't", async () => {
  const removed = await start();
  await removed.daemon.die();
  await Promise.all([removed.watch.unreachable("click"), removed.watch.unreachable("drag")]);
  expect(removed.restarts).toEqual([
    expect.stringMatching(/^click could not be sent, and then metadata failed too: .*can't be reached/),
  ]);

  const died = await start();
  await died.daemon.die();
  const looked = died.watch.unreachable("click");
  Object.assign(died.running, { pid: undefined, state: "away" });
  await looked;
  expect(died.restarts).toEqual([]);

  const back = await start();
  await back.watch.unreachable("click");
  expect(back.restarts).toEqual([]);
});
