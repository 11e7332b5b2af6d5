import { dirname } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { readPin } from "../../../../drivers/cua-driver/pin.js";
import { daemonService, socketPath } from "../../../../drivers/cua-driver/service.js";
import { SetupError } from "../../../../src/errors.js";
import { FakeCuaDaemon } from "../../../fakes/cua-daemon.js";

async function service(afterDeath?: () => Promise<void>) {
  const daemon = await FakeCuaDaemon.start();
  const runtimeDir = dirname(daemon.socketPath);
  const client = new DaemonClient({ socketPath: socketPath(runtimeDir), log: pino({ level: "silent" }) });
  onTestFinished(async () => {
    client.close();
    await daemon[Symbol.asyncDispose]();
  });
  const spec = daemonService({
    executable: "/opt/cua-driver",
    runtimeDir,
    pin: await readPin(),
    client,
    ...(afterDeath === undefined ? {} : { afterDeath }),
  });
  return { daemon, client, spec, runtimeDir };
}

test("the daemon is started on the computer's own socket, quiet, and leaves no socket or pid file", async () => {
  const { spec, runtimeDir } = await service();
  expect(spec).toMatchObject({
    name: "cua-driver",
    command: [
      "/opt/cua-driver",
      ...["serve", "--socket", `${runtimeDir}/cua-driver.sock`, "--pid-file", `${runtimeDir}/cua-driver.pid`],
      ...["--dangerously-bypass-approvals", "--no-overlay"],
    ],
    environment: {
      CUA_DRIVER_RS_TELEMETRY_ENABLED: "0",
      CUA_DRIVER_RS_UPDATE_CHECK: "0",
      MALLOC_MMAP_THRESHOLD_: "33554432",
      MALLOC_TRIM_THRESHOLD_: "67108864",
      MALLOC_ARENA_MAX: "2",
    },
    removes: [`${runtimeDir}/cua-driver.sock`, `${runtimeDir}/cua-driver.pid`],
  });
  // In the session user's home, the default of a service: programs that it launches begin there.
  expect(spec.cwd).toBeUndefined();
});

test("the daemon is up once it answers with the pinned version, however late that is", async () => {
  const { daemon, client, spec } = await service();
  await daemon.die();
  const ready = spec.ready?.(new AbortController().signal);
  let up = false;
  void ready?.then(() => {
    up = true;
  });
  await client.metadata().catch(() => {});
  expect(up).toBe(false);
  await daemon.listen();
  await ready;
  expect(client.knownPid).toBe(4242);
});

test("what a dead daemon left on the display is cleared up before the next one counts as up", async () => {
  const cleared: PromiseWithResolvers<void>[] = [];
  const { spec } = await service(() => {
    const one = Promise.withResolvers<void>();
    cleared.push(one);
    return one.promise;
  });
  await spec.ready?.(new AbortController().signal);
  expect(cleared).toHaveLength(0);
  let up = false;
  const ready = spec.ready?.(new AbortController().signal).then(() => {
    up = true;
  });
  await vi.waitFor(() => expect(cleared).toHaveLength(1));
  expect(up).toBe(false);
  cleared[0]?.resolve();
  await ready;
});

test.each([
  ["driver_version", "0.36.0"],
  ["contract_version", "0.7.0"],
])("a daemon of another %s is a SetupError that names both", async (key, version) => {
  const { daemon, spec } = await service();
  daemon.metadata = { ...daemon.metadata, [key]: version };
  const error = await spec.ready?.(new AbortController().signal).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SetupError);
  expect((error as SetupError).message).toContain(version);
  expect((error as SetupError).message).toMatch(/pinned is 0\.37\.0 \(0\.8\.0\)/);
});

test("waiting for a daemon ends when it is told to", async () => {
  const { daemon, spec } = await service();
  await daemon.die();
  const stop = new AbortController();
  const ready = spec.ready?.(stop.signal);
  stop.abort(new Error("the process died"));
  await expect(ready).rejects.toThrow();
  await vi.waitFor(() => expect(daemon.open).toBe(0));
});
