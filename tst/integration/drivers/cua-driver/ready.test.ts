import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DaemonClient } from "../../../../drivers/cua-driver/daemon-client.js";
import { CuaDriver } from "../../../../drivers/cua-driver/driver.js";
import { daemonCheck, type ReadyContext, startChecks } from "../../../../drivers/cua-driver/ready-checks.js";
import { daemonService } from "../../../../drivers/cua-driver/service.js";
import type { RunningService } from "../../../../src/computer/session.js";
import { ComputerSettings } from "../../../../src/computer/settings.js";
import { Service } from "../../../../src/desktop/service.js";
import { SetupError } from "../../../../src/errors.js";
import type { ReadyCheck } from "../../../../src/protocol/computer.js";
import type { JsonObject } from "../../../../src/protocol/tool.js";
import { FakeCuaDaemon } from "../../../fakes/cua-daemon.js";
import { type Computer, startComputer } from "../../../harness/computer.js";
import { until } from "../../../harness/until.js";
import { RealDaemon } from "./real.js";

const log = pino({ level: "silent" });
const { signal } = new AbortController();

/** What a daemon says that answers as the real one does, but where a test changes it; and what the checks say of it. */
class Checked {
  readonly service: { pid: number | undefined; state: RunningService["state"]; lastLines: string[] };

  private constructor(
    readonly daemon: FakeCuaDaemon,
    private readonly context: Omit<ReadyContext, "service" | "needsAccessibility">,
    pid: number | undefined,
  ) {
    this.service = { pid, state: "up", lastLines: [] };
  }

  static async start(bus?: string): Promise<Checked> {
    const daemon = await FakeCuaDaemon.start();
    daemon.metadata = { ...(await real.client.metadata()) };
    daemon.list = structuredClone(await real.client.list());
    const client = new DaemonClient({ socketPath: daemon.socketPath, log });
    onTestFinished(async () => {
      client.close();
      await daemon[Symbol.asyncDispose]();
    });
    return new Checked(daemon, { pin: real.pin, client, session: real.session(bus) }, real.pid);
  }

  get tools(): JsonObject[] {
    return (this.daemon.list as { tools: JsonObject[] }).tools;
  }

  async checks(needsAccessibility = false): Promise<Record<string, ReadyCheck>> {
    const context = { ...this.context, needsAccessibility, service: () => this.service as unknown as RunningService };
    const checks = [await daemonCheck(context, signal), ...(await startChecks(context, signal))];
    return Object.fromEntries(checks.map((check) => [check.name, check]));
  }
}

let real: RealDaemon;
let bus: string;

beforeAll(async () => {
  real = await RealDaemon.start();
  const daemon = spawn("dbus-daemon", ["--session", "--nofork", "--print-address"], {
    stdio: ["ignore", "pipe", "ignore"],
    env: real.session().user.environment(),
  });
  onFinish.push(async () => {
    const ended = once(daemon, "exit");
    daemon.kill();
    await ended;
  });
  bus = String((await once(createInterface({ input: daemon.stdout }), "line"))[0]);
});
const onFinish: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const finish of onFinish) await finish();
  await real?.[Symbol.asyncDispose]();
});

function failing(checks: Record<string, ReadyCheck>): string[] {
  return Object.values(checks).flatMap(({ name, ok }) => (ok ? [] : [name]));
}

describe("readiness tells apart", () => {
  it("a computer on which all is as pinned", async () => {
    const checked = await Checked.start(bus);
    expect(await checked.checks(true)).toEqual({
      daemon: { name: "daemon", ok: true, detail: `cua-driver 0.37.0, pid ${real.pid}` },
      executable: { name: "executable", ok: true, detail: expect.stringMatching(/^sha256 [0-9a-f]{64}, as pinned$/) },
      tools: { name: "tools", ok: true, detail: "66 tools, as pinned" },
      "accessibility bus": { name: "accessibility bus", ok: true, detail: "it answers" },
    });
  });

  it("a process that runs another binary, naming both digests", async () => {
    const checked = await Checked.start(bus);
    checked.service.pid = process.pid;
    checked.daemon.metadata.pid = process.pid;
    const checks = await checked.checks();
    expect(failing(checks)).toEqual(["executable"]);
    expect(checks.executable?.detail).toMatch(/sha256 is [0-9a-f]{64}, pinned for \w+ is [0-9a-f]{64}/);
  });

  it("a daemon of another version, and one that isn't the one that was started here", async () => {
    const checked = await Checked.start(bus);
    checked.daemon.metadata.driver_version = "0.36.0";
    let checks = await checked.checks();
    expect(failing(checks)).toEqual(["daemon"]);
    expect(checks.daemon?.detail).toContain("cua-driver 0.36.0, pid");
    expect(checks.daemon?.detail).toContain("pinned is 0.37.0");
    Object.assign(checked.daemon.metadata, { driver_version: "0.37.0", pid: 1 });
    checks = await checked.checks();
    expect(checks.daemon?.detail).toContain(`the one that was started here has pid ${real.pid}`);
  });

  it("a tool that is missing, one that was added, and one whose schema changed", async () => {
    const checked = await Checked.start(bus);
    const [gone] = checked.tools.splice(0, 1);
    checked.tools.push({ ...gone, name: "new_tool" });
    const click = checked.tools.find(({ name }) => name === "click") as JsonObject;
    click.input_schema = { type: "object", required: ["x"] };
    const checks = await checked.checks();
    expect(failing(checks)).toEqual(["tools"]);
    expect(checks.tools?.detail).toBe(
      `tool ${gone?.name}: missing; tool click: changed (required arguments, inputSchema); tool new_tool: added`,
    );
  });

  it("a daemon that is down, with the last lines that it wrote", async () => {
    const checked = await Checked.start(bus);
    await checked.daemon.die();
    Object.assign(checked.service, { pid: undefined, state: "away", lastLines: ["one", "cua-driver serve error: no"] });
    const checks = await checked.checks();
    expect(checks.daemon).toMatchObject({ ok: false });
    expect(checks.daemon?.detail).toMatch(
      /can't be reached.*\nits service is away\nits last lines:\none\ncua-driver serve/,
    );
  });

  it("a computer without an accessibility bus, which only an env that needs one isn't ready with", async () => {
    const checked = await Checked.start();
    const checks = await checked.checks();
    expect(failing(checks)).toEqual([]);
    expect(checks["accessibility bus"]?.detail).toMatch(/^warning: it doesn't answer/);
    expect(failing(await checked.checks(true))).toEqual(["accessibility bus"]);
  });

  it("a display that is gone, under a daemon that is well", async () => {
    const lost = await RealDaemon.start();
    onTestFinished(() => lost[Symbol.asyncDispose]());
    const driver = new CuaDriver({ session: lost.session(bus), settings: ComputerSettings.parse({}), log });
    await driver.prepare();
    onTestFinished(() => driver.close());
    expect(await driver.readiness()).toEqual({ ready: true, reasons: [] });
    await lost.killDisplay();
    const readiness = await until(
      () => driver.readiness(),
      ({ ready }) => !ready,
    );
    expect(readiness.reasons).toEqual([expect.stringMatching(/^display: cua-driver can't do get_screen_size: /)]);
    expect(await driver.startup()).toEqual({ ready: true, reasons: [] });
  });
});

describe("a daemon that can't come up is said within 5 s, with its last lines", () => {
  async function start(command: readonly string[], runtimeDir = real.runtimeDir) {
    const lines: string[] = [];
    const told = { write: (line: string) => void lines.push(line) };
    const spec = daemonService({
      executable: "",
      runtimeDir,
      pin: real.pin,
      client: new DaemonClient({ socketPath: "/none", log }),
    });
    const [, ...args] = spec.command;
    const service = new Service(
      { ...spec, command: [...command, ...args] as [string, ...string[]] },
      { user: real.session().user, log: pino({ level: "warn" }, told) },
    );
    onTestFinished(() => service.stop(0));
    const started = performance.now();
    const error = await service.start().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(error).toBeInstanceOf(SetupError);
    expect(service.state).toBe("failed");
    return { error: error as SetupError, log: lines.join(""), service };
  }

  it("where its socket's path isn't writable", async () => {
    const { error, log, service } = await start([real.installed.executable], "/proc/self/status");
    expect(error.message).toContain("cua-driver does not start: exit code 1");
    expect(error.hint).toMatch(/its last lines:[\s\S]*cua-driver serve error/);
    expect(log).toMatch(/"lines":\[[^\]]*cua-driver serve error[\s\S]*does not start/);
    expect(service.lastLines.join("")).not.toContain("\u001b");
  });

  it("where its binary isn't one", async () => {
    expect((await start(["/etc/hostname"])).error.message).toContain("does not start: exit code 127");
  });

  it("where it crashes again and again", async () => {
    const { error, log } = await start(["/bin/sh", "-c", "echo out of luck; exit 7"]);
    expect(error.message).toContain("does not start: exit code 7");
    expect(error.hint).toContain("out of luck");
    expect(log.match(/"died"/g)?.length).toBeGreaterThanOrEqual(4);
    expect(log).toContain('"lines":["out of luck"]');
  });
});

describe("a computer that runs", () => {
  let computer: Computer;
  beforeAll(async () => {
    computer = await startComputer();
  });
  afterAll(async () => {
    await computer?.[Symbol.asyncDispose]();
  });

  const status = async () =>
    (await computer.invoke("computer-ready/status")).body as { ready: boolean; checks: ReadyCheck[] };
  const health = async (path: string) => {
    const response = await fetch(`${computer.url}${path}`);
    return { status: response.status, body: (await response.json()) as { reasons?: string[] } };
  };

  it("has passed every check, and says what each saw", async () => {
    const { ready, checks } = await status();
    expect(checks.map(({ name }) => name)).toEqual([
      "display",
      "capture",
      "daemon",
      "executable",
      "tools",
      "accessibility bus",
    ]);
    expect(checks.find(({ name }) => name === "tools")?.detail).toBe("66 tools, as pinned");
    expect(checks.find(({ name }) => name === "executable")?.detail).toMatch(/as pinned$/);
    expect(ready).toBe(true);
    expect((await health("/healthz")).status).toBe(200);
    expect((await health("/readyz")).status).toBe(200);
    expect((await health("/startupz")).status).toBe(200);
  });

  it("sees a daemon that is away now, and what it found once stands", async () => {
    const { pid } = JSON.parse(
      await computer.run("sh", "-c", `echo '{"pid":'$(cat ${computer.runDir}/cua-driver.pid)'}'`),
    ) as { pid: number };
    // Stopped, it is there and answers nothing.
    await computer.run("kill", "-STOP", String(pid));
    const seen = await status();
    expect(seen.ready).toBe(false);
    expect(seen.checks.find(({ name }) => name === "daemon")?.ok).toBe(false);
    expect(seen.checks.find(({ name }) => name === "tools")).toMatchObject({ ok: true });
    const { status: code, body } = await health("/startupz");
    expect([code, body.reasons]).toEqual([200, []]);
    // It is restarted, as it hangs.
    const back = await until(status, ({ ready }) => ready, { ms: 20_000, what: "a computer that is ready again" });
    expect(back.checks.find(({ name }) => name === "daemon")?.detail).not.toContain(`pid ${pid}`);
    expect(computer.command.stderr).toContain("missed its deadline");
  });
});
