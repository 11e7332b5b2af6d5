import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ServiceSpec } from "../../../src/computer/session.js";
import { Desktop, type DesktopOptions } from "../../../src/desktop/desktop.js";
import { askDisplay } from "../../../src/desktop/x-client.js";
import { SetupError } from "../../../src/errors.js";
import { alive, descendants, fileAt, isRoot, needsRoot } from "../../harness/desktop.js";
import { processesWith } from "../../harness/processes.js";
import { until } from "../../harness/until.js";
import { pressInWindow } from "../../harness/x-window.js";

const log = pino({ level: "silent" });
let runtimeDir: string;
const open: Desktop[] = [];

beforeEach(() => {
  runtimeDir = mkdtempSync(join(tmpdir(), "desk-"));
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((desktop) => desktop.close()));
  rmSync(runtimeDir, { recursive: true, force: true });
});

async function start(options: Partial<DesktopOptions> = {}): Promise<Desktop> {
  const desktop = await Desktop.start({
    display: { width: 640, height: 480 },
    runtimeDir,
    dataDir: runtimeDir,
    log,
    ...options,
  });
  open.push(desktop);
  return desktop;
}

/** A service that writes a line, says that it answers by a file, and goes on for ever. */
function steady(name: string, script = ""): ServiceSpec {
  const answers = join(runtimeDir, `${name}.answers`);
  return {
    name,
    command: ["/bin/sh", "-c", `echo hello from ${name}; ${script} echo $$ >${answers}; exec sleep 5555`],
    removes: [answers],
    ready: async (signal) => {
      while (!existsSync(answers)) {
        signal.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    },
  };
}

const socketOf = (display: string) => `/tmp/.X11-unix/X${display.slice(1)}`;

/** A display's number that nobody uses. */
async function freeDisplay(): Promise<string> {
  for (let number = 70; ; number += 1) {
    if (!existsSync(socketOf(`:${number}`)) && (await askDisplay(`:${number}`)) === undefined) return `:${number}`;
  }
}

function kill(pid: number | undefined): void {
  if (pid === undefined) throw new Error("it does not run");
  process.kill(pid, "SIGKILL");
}

/** Waits until a service is up under another pid. */
async function isBack(desktop: Desktop, name: string, before: number | undefined, ms = 5000): Promise<void> {
  const service = desktop.service(name);
  await until(
    () => [service.state, service.pid] as const,
    ([state, pid]) => state === "up" && pid !== before,
    { ms, every: 2, what: `${name}, back` },
  );
}

function running(name: string): number {
  return processesWith(runtimeDir).filter(({ command, state }) => state !== "Z" && command.includes(name)).length;
}

describe("a desktop", () => {
  it("has a display, both buses and a window manager when it has started", async () => {
    const desktop = await start();
    expect(await askDisplay(desktop.session.display)).toEqual({ width: 640, height: 480, hasWindowManager: true });
    expect([desktop.width, desktop.height]).toEqual([640, 480]);
    expect(desktop.services.map(({ name, state }) => [name, state])).toEqual([
      ["display", "up"],
      ["bus", "up"],
      ["window-manager", "up"],
    ]);
    const { user } = desktop.session;
    const call = ["--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus.GetAddress"];
    const reply = execFileSync("dbus-send", call, { env: user.environment(), encoding: "utf8" });
    expect(reply).toContain(`unix:path=${runtimeDir}/at-spi/`);
  });

  it("gives programs what a login gives a person, and nothing of the server's own environment", async () => {
    process.env.AGENTENV_TEST_TOKEN = "secret";
    const desktop = await start();
    const child = desktop.session.user.spawn("/usr/bin/env", [], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { EXTRA: "1" },
    });
    let text = "";
    for await (const chunk of child.stdout ?? []) text += chunk;
    delete process.env.AGENTENV_TEST_TOKEN;
    const names = text
      .split("\n")
      .flatMap((line) => line.split("=", 1))
      .filter(Boolean)
      .sort();
    expect(names).toEqual([
      ...["ACCESSIBILITY_ENABLED", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "EXTRA", "GTK_MODULES", "HOME", "LANG"],
      ...["LOGNAME", "PATH", "QT_ACCESSIBILITY", "QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "SHELL", "USER"],
      ...["XDG_RUNTIME_DIR", "XDG_SESSION_TYPE"],
    ]);
    expect(text).toContain("LANG=C.UTF-8\n");
    expect(text).toContain("PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games\n");
  });

  it("lets its own user and root connect, and nobody else", async () => {
    const desktop = await start();
    const { display, user } = desktop.session;
    const listed = execFileSync("xhost", [], { env: { DISPLAY: display, PATH: "/usr/bin:/bin" }, encoding: "utf8" });
    expect(listed.split("\n").slice(1).filter(Boolean).sort()).toEqual(
      [...new Set([`SI:localuser:${user.name}`, "SI:localuser:root"])].sort(),
    );
  });

  it.runIf(isRoot)(`refuses the connection of another user${needsRoot}`, async () => {
    const desktop = await start();
    const ask = ["--reuid", "65534", "--clear-groups", "xhost"];
    const env = { DISPLAY: desktop.session.display, PATH: "/usr/bin:/bin" };
    expect(spawnSync("setpriv", ask, { env }).status).not.toBe(0);
    expect(spawnSync("xhost", [], { env }).status).toBe(0);
  });

  it("starts its apps in the home of the session user, once", async () => {
    const desktop = await start();
    desktop.startApps([`pwd >${runtimeDir}/where; exec sleep 4444`]);
    // The shell's own command line has these words as well, until it has become the program.
    await until(() => processesWith(runtimeDir).some(({ command }) => command === "sleep 4444"));
    expect(readFileSync(join(runtimeDir, "where"), "utf8").trim()).toBe(desktop.session.user.home);
    kill(processesWith(runtimeDir).find(({ command }) => command.includes("sleep 4444"))?.pid);
    await until(() => running("sleep 4444") === 0);
    expect(running("sleep 4444")).toBe(0);
  });

  it("warns of an app that fails, with what it said, and of no other", async () => {
    const lines: string[] = [];
    const desktop = await start({ log: pino({ level: "warn" }, { write: (line) => void lines.push(line) }) });
    desktop.startApps(["true", "echo no such file >&2; exit 3", `exec sleep 4446`]);
    await until(() => lines.length > 0);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { app: "echo no such file >&2; exit 3", how: "exit code 3", lastLines: ["no such file"] },
    ]);
  });

  it("refuses an app that is not installed, and names it", async () => {
    const desktop = await start();
    const refused = () => desktop.startApps(["sleep 4444", "no-such-app --flag"]);
    expect(refused).toThrow(SetupError);
    expect(refused).toThrow(/no-such-app/);
    expect(running("sleep 4444")).toBe(0);
  });

  it("uses an X server that answers there already, and leaves it alone when it closes", async () => {
    const one = await start({ display: { width: 640, height: 480, name: ":4721" } });
    const other = mkdtempSync(join(tmpdir(), "desk-"));
    const guest = await start({ display: { width: 100, height: 100, name: ":4721" }, runtimeDir: other });
    expect(guest.session.display).toBe(":4721");
    expect([guest.width, guest.height]).toEqual([640, 480]);
    expect(guest.services.map(({ name }) => name)).toEqual(["bus"]);
    await guest.close();
    rmSync(other, { recursive: true });
    expect(await askDisplay(":4721")).toBeDefined();
    expect(one.service("display").state).toBe("up");
  });

  it("says why when its display does not start", async () => {
    await expect(start({ display: { width: 640, height: 480, depth: 7 } })).rejects.toThrow(
      /^display does not start: .*exit code 1/,
    );
    expect(processesWith(runtimeDir)).toEqual([]);
  });

  it("lets clicks and keys with Alt, Super and Control through to the program", async () => {
    const desktop = await start();
    // Keycodes: Alt, Super, Control, and Tab, F4, e, Left, Escape, space. Control+Alt+F4 is the X server's own.
    const holds = [[64], [133], [37, 64]];
    const chords = [
      ...[23, 26, 113, 9, 65].flatMap((key) => holds.map((hold) => ({ hold, key }))),
      ...[[64], [133]].map((hold) => ({ hold, key: 70 })),
      ...[1, 2, 3, 4, 5].flatMap((button) => holds.map((hold) => ({ hold, button }))),
    ];
    const seen = await pressInWindow(desktop.session.display, chords);
    expect(seen).toEqual(chords.map((chord) => ("key" in chord ? `key ${chord.key}` : `button ${chord.button}`)));
  });
});

describe("a service", () => {
  it("is started anew at once when it dies, and is up again within 0.3 s", async () => {
    const desktop = await start();
    await desktop.addServices([steady("steady")]);
    const times: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const { pid } = desktop.service("steady");
      const killed = performance.now();
      kill(pid);
      await isBack(desktop, "steady", pid);
      times.push(performance.now() - killed);
    }
    expect(Math.min(...times)).toBeLessThan(300);
    const lines = await until(
      () => desktop.service("steady").lastLines,
      ({ length }) => length >= 4,
    );
    expect(lines).toEqual(Array(4).fill("hello from steady"));
  });

  it("takes its whole process group with it, and what it says it removes", async () => {
    const desktop = await start();
    await desktop.addServices([steady("steady", "(sleep 5556 &) ;")]);
    const { pid } = desktop.service("steady");
    const answers = join(runtimeDir, "steady.answers");
    const before = readFileSync(answers, "utf8");
    await until(() => running("sleep 5556") === 1);
    kill(pid);
    await isBack(desktop, "steady", pid);
    await until(() => running("sleep 5556") === 1);
    expect(readFileSync(answers, "utf8")).not.toBe(before);
  });

  it("is restarted on request, without a wait", async () => {
    const desktop = await start();
    await desktop.addServices([steady("steady")]);
    for (let round = 0; round < 8; round += 1) {
      const { pid } = desktop.service("steady");
      desktop.service("steady").restart("a test asked for it");
      await isBack(desktop, "steady", pid, 2000);
    }
  });

  it("that dies before it answers is tried with growing pauses, and fails with its last lines", async () => {
    const desktop = await start();
    const starts = join(runtimeDir, "starts");
    const spec = {
      ...steady("hasty"),
      command: ["/bin/sh", "-c", `date +%s%N >>${starts}; echo no such luck; exit 3`] as const,
    };
    const failing = desktop.addServices([spec]);
    await expect(failing).rejects.toThrow("hasty does not start: exit code 3");
    await expect(failing).rejects.toMatchObject({ hint: expect.stringContaining("no such luck") });
    expect(desktop.service("hasty").state).toBe("failed");
    const times = readFileSync(starts, "utf8")
      .trim()
      .split("\n")
      .map((line) => Number(line) / 1e6);
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(pauses).toHaveLength(4);
    for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(100 * 2 ** index - 1);
  });

  it("that failed is up once it answers after all", async () => {
    const desktop = await start();
    const mended = join(runtimeDir, "mended");
    const spec = steady("broken", `[ -e ${mended} ] || exit 1;`);
    await expect(desktop.addServices([spec])).rejects.toThrow(/broken does not start/);
    writeFileSync(mended, "");
    await isBack(desktop, "broken", undefined);
  });

  it("that never answers is killed and fails", async () => {
    const desktop = await start();
    const spec = { ...steady("mute"), ready: () => new Promise<void>(() => {}), readyMs: 150 };
    await expect(desktop.addServices([spec])).rejects.toThrow("mute does not start: it did not answer within 150 ms");
  });

  it("that answers and dies over and over does not spin", async () => {
    const desktop = await start();
    const starts = join(runtimeDir, "starts");
    const spec: ServiceSpec = { name: "moth", command: ["/bin/sh", "-c", `echo >>${starts}; sleep 0.01`] };
    await desktop.addServices([spec]);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(readFileSync(starts, "utf8").length).toBeLessThanOrEqual(8);
  });

  it("whose program is missing fails with its name", async () => {
    const desktop = await start();
    await expect(desktop.addServices([{ name: "ghost", command: ["/no/such/program"] }])).rejects.toThrow(
      /ghost does not start: .*\/no\/such\/program/,
    );
  });

  it("has a name of its own", async () => {
    const desktop = await start();
    await expect(desktop.addServices([steady("bus")])).rejects.toThrow(/has a service bus already/);
  });
});

describe("a desktop whose parts die", () => {
  it("comes back on the same display after kill -9 of the X server, with what was shown there", async () => {
    const desktop = await start();
    desktop.startApps(["exec xterm"]);
    await desktop.addServices([steady("driver")]);
    await until(() => running("xterm") === 1);
    const before = desktop.services.map(({ pid }) => pid);
    const display = desktop.service("display").pid;
    kill(display);
    for (const [index, { name }] of desktop.services.entries()) {
      if (name !== "bus") await isBack(desktop, name, before[index]);
    }
    expect(desktop.service("bus").pid).toBe(before[1]);
    expect(await askDisplay(desktop.session.display)).toEqual({ width: 640, height: 480, hasWindowManager: true });
    await until(() => running("xterm") === 1);
  });

  it("starts each app once when the X server and the bus die together", async () => {
    const desktop = await start();
    desktop.startApps(["exec sleep 4448"]);
    await until(() => running("sleep 4448") === 1);
    const parts = ["display", "bus", "window-manager"];
    const before = parts.map((name) => desktop.service(name).pid);
    kill(before[0]);
    kill(before[1]);
    for (const [index, name] of parts.entries()) await isBack(desktop, name, before[index]);
    await until(() => running("sleep 4448") === 1);
    expect(running("sleep 4448")).toBe(1);
  });

  it("starts no app twice when the window manager dies alone", async () => {
    const desktop = await start();
    desktop.startApps(["exec sleep 4445"]);
    await until(() => running("sleep 4445") === 1);
    const { pid } = desktop.service("window-manager");
    kill(pid);
    await isBack(desktop, "window-manager", pid);
    expect(running("sleep 4445")).toBe(1);
  });

  it("brings the buses back at the same address, and a driver's services and the apps with them", async () => {
    const desktop = await start();
    await desktop.addServices([steady("driver")]);
    // One that the bus takes with it, as GTK's programs are, and one that wouldn't notice.
    desktop.startApps(["exec dbus-monitor --session >/dev/null", "exec sleep 4447"]);
    const apps = () => processesWith(runtimeDir).filter(({ command }) => /^(dbus-monitor|sleep 4447)/.test(command));
    const first = await until(apps, (seen) => seen.length === 2, { what: "the apps" });
    const [bus, driver] = [desktop.service("bus").pid, desktop.service("driver").pid];
    kill(bus);
    await isBack(desktop, "bus", bus);
    await isBack(desktop, "driver", driver);
    const again = await until(apps, (seen) => seen.length === 2 && !first.some(({ pid }) => pid === seen[0]?.pid));
    expect(again.filter(({ pid }) => first.some((before) => before.pid === pid))).toEqual([]);
    const call = ["--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus.GetAddress"];
    execFileSync("dbus-send", call, { env: desktop.session.user.environment() });
  });
});

describe("closing a desktop", () => {
  it("ends all of it within 1.2 s, deaf programs included, and may be asked for twice", async () => {
    const desktop = await start();
    await desktop.addServices([steady("deaf", "trap '' TERM;")]);
    desktop.startApps(["trap '' TERM; sleep 4446"]);
    await until(() => running("sleep 4446") === 2);
    const tree = new Set(descendants(process.pid).flatMap(({ id, pid }) => (pid === process.pid ? [] : [id])));
    // Another X server may take the number as soon as it is free.
    const socket = socketOf(desktop.session.display);
    const ours = fileAt(socket);
    expect(ours).toBeDefined();
    const begun = performance.now();
    await Promise.all([desktop.close(), desktop.close()]);
    expect(performance.now() - begun).toBeLessThan(1200);
    await until(
      () => processesWith(runtimeDir),
      (left) => left.length === 0,
      { ms: 500 },
    );
    expect(alive(tree).filter((one) => !one.includes("(Z)"))).toEqual([]);
    expect(fileAt(socket)).not.toBe(ours);
    expect(readdirSync(runtimeDir)).not.toContain("bus");
    expect(desktop.services.map(({ state }) => state)).toEqual(Array(4).fill("stopped"));
    await expect(desktop.addServices([steady("late")])).rejects.toThrow(/closed/);
  });

  it.each(["its display", "its bus"])(
    "that is given up while it waits for %s leaves nothing of it, not even a socket",
    async (what) => {
      const given = new AbortController();
      const name = await freeDisplay();
      const starting = start({ display: { width: 640, height: 480, name }, signal: given.signal });
      starting.catch(() => {});
      const has = { "its display": socketOf(name), "its bus": join(runtimeDir, "bus") }[what] ?? "";
      await until(() => existsSync(has), Boolean, { every: 1, what: has });
      given.abort(new Error("given up"));
      await expect(starting).rejects.toThrow("given up");
      expect(existsSync(socketOf(name))).toBe(false);
      expect(processesWith(runtimeDir)).toEqual([]);
    },
  );

  it("ends services that are about to be started again", async () => {
    const desktop = await start();
    await desktop.addServices([steady("steady")]);
    kill(desktop.service("display").pid);
    await desktop.close();
    await until(
      () => processesWith(runtimeDir),
      (left) => left.length === 0,
      { ms: 500 },
    );
  });
});
