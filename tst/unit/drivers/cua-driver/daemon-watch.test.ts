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
    deadlines: { call: 30, metadata: 40 },
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

test("a daemon that misses a deadline and then doesn't answer metadata is restarted once, and the log says why", async () => {
  const { daemon, log, restarts, miss } = await start();
  daemon.behaviour = () => "hang";
  daemon.hangs = true;
  await Promise.all([miss(), miss(), miss()]);
  expect(restarts).toEqual(["click missed its deadline, and then the daemon didn't answer metadata within 0.04 s"]);
  expect(log.lines.map(({ message }) => message).join("\n")).toContain("cua-driver hangs and is restarted");
  expect(daemon.requests.filter(({ method }) => method === "metadata")).toHaveLength(1);
});

test("a daemon that misses a deadline and answers metadata goes on", async () => {
  const { daemon, log, restarts, miss } = await start();
  daemon.behaviour = () => "hang";
  await miss();
  expect(restarts).toEqual([]);
  expect(log.lines.map(({ message }) => message)).toContain(
    "cua-driver missed a deadline and answers: it isn't restarted",
  );
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
