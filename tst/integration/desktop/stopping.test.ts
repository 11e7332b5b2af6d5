import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { removeUnused } from "../../../src/desktop/folders.js";
import { askDisplay } from "../../../src/desktop/x-client.js";
import {
  alive,
  DesktopLab,
  descendants,
  isRoot,
  needsRoot,
  type RunningDesktop,
  sessionUser,
} from "../../harness/desktop.js";
import { processesWith } from "../../harness/processes.js";
import { until } from "../../harness/until.js";

const lab = new DesktopLab();
afterAll(() => lab[Symbol.dispose]());

/** What agents start and nobody else knows: a grandchild in a session of its own, twice forked away, deaf to SIGTERM. */
const LITTER = `setsid sh -c 'trap "" TERM HUP; (sleep 4321 &); exec sleep 4322' & setsid --fork env -i sleep 4323`;
/** Where there is no namespace, a program that forgot its whole environment is known by its descent alone. */
const computer = { apps: ["xterm"], launches: [LITTER] };

const isolations = isRoot ? (["pid", "user", "none"] as const) : (["user", "none"] as const);
/** What is around a computer is the same whether root starts it or the session user, so not all is tried in all of these. */
const modes = [
  ...isolations.map((isolation) => [isolation, false] as const),
  ...(isRoot ? (["user", "none"] as const).map((isolation) => [isolation, true] as const) : []),
];

async function startLittered(options: Parameters<DesktopLab["start"]>[0] = {}): Promise<RunningDesktop> {
  const desktop = await lab.start({ computer, ...options });
  const comms = () => descendants(desktop.process.pid).map(({ comm }) => comm);
  await until(comms, (seen) => seen.filter((comm) => comm === "sleep").length === 3 && seen.includes("xterm"), {
    every: 50,
    what: "the programs that an agent started",
  });
  return desktop;
}

/** The promise: within 2 seconds there is no process, no socket and no X lock of the computer. */
async function expectNothingLeft(desktop: RunningDesktop, tree: ReadonlySet<string>, ms = 2000): Promise<void> {
  expect(tree.size).toBeGreaterThan(8);
  const left = () => [
    ...alive(tree),
    ...processesWith(desktop.runtimeDir).map(({ pid, command }) => `${pid} ${command}`),
    ...desktop.xFiles(),
    ...(existsSync(desktop.runtimeDir) ? readdirSync(desktop.runtimeDir) : []),
  ];
  await until(left, (found) => found.length === 0, { ms, every: 50, what: "a machine without the computer" });
}

describe.concurrent.each(modes)(
  "a computer with isolation %s, started as the session user: %s",
  (isolation, asSessionUser) => {
    const start = (options: Parameters<DesktopLab["start"]>[0] = {}) =>
      startLittered({ isolation, asSessionUser, ...options });

    it("runs as the session user, leaves nothing after SIGTERM, and ends with 0", async () => {
      await using desktop = await start();
      // The pid is the server's as the machine sees it.
      expect(desktop).toMatchObject({ uid: sessionUser.uid, isolation });
      const programs = descendants(desktop.pid).map(({ comm }) => comm);
      expect(programs).toEqual(expect.arrayContaining(["Xvfb", "dbus-daemon", "openbox", "xterm"]));
      const tree = desktop.tree();
      desktop.process.kill("SIGTERM");
      await expectNothingLeft(desktop, tree);
      expect(await desktop.process.ended).toMatchObject({ code: 0 });
      // Root's folder of runtime folders can't be changed by what waits for the end of these; the next start does it.
      const removes = isolation === "pid" || asSessionUser || !isRoot;
      const left = [desktop.runtimeDir, `${desktop.runtimeDir}.lock`].filter((path) => existsSync(path));
      expect(left).toHaveLength(removes ? 0 : 2);
    });

    it("leaves nothing after kill -9 of the server, and says so by its exit code", async () => {
      await using desktop = await start();
      const tree = desktop.tree();
      process.kill(desktop.pid, "SIGKILL");
      await expectNothingLeft(desktop, tree);
      expect(await desktop.process.ended).toMatchObject({
        code: 137,
        output: expect.stringContaining("the server was ended by SIGKILL"),
      });
    });

    it("leaves nothing after kill -9 of the process that was started", async () => {
      await using desktop = await start();
      const tree = desktop.tree();
      desktop.process.kill("SIGKILL");
      await expectNothingLeft(desktop, tree);
    });
  },
);

describe.concurrent.each(isolations)("a computer with isolation %s at a terminal", (isolation) => {
  it("leaves nothing after Ctrl-C at a terminal, and ends with 0", async () => {
    await using desktop = await startLittered({ isolation, terminal: true });
    const tree = desktop.tree();
    desktop.process.write("\x03");
    await expectNothingLeft(desktop, tree);
    expect(await desktop.process.ended).toMatchObject({ code: 0 });
  });

  it("can't be stopped halfway by Ctrl-Z at a terminal", async () => {
    await using desktop = await startLittered({ isolation, terminal: true });
    const tree = desktop.tree();
    desktop.process.write("\x1a");
    desktop.process.write("\x03");
    await expectNothingLeft(desktop, tree);
  });

  it("leaves nothing when its terminal is closed", async () => {
    await using desktop = await startLittered({ isolation, terminal: true });
    const tree = desktop.tree();
    // The terminal's other end: with it goes the terminal.
    process.kill(desktop.process.pid, "SIGKILL");
    await expectNothingLeft(desktop, tree);
  });
});

const namespaces = isolations.filter((isolation) => isolation !== "none");

describe.concurrent.each(namespaces)("a computer with isolation %s that a program of it attacks", (isolation) => {
  /** A program of the computer runs the line once `go` is called; 1 is its namespace's first process, 2 the guardian. */
  const attacked = async (line: string) => {
    const attack = `mkfifo $XDG_RUNTIME_DIR/go; read go <$XDG_RUNTIME_DIR/go; ${line}`;
    const desktop = await startLittered({ isolation, computer: { ...computer, launches: [LITTER, attack] } });
    const pipe = join(desktop.runtimeDir, "go");
    await until(() => existsSync(pipe));
    return Object.assign(desktop, { tree: desktop.tree(), go: () => writeFileSync(pipe, "go\n") });
  };
  const isStopped = (desktop: RunningDesktop) => {
    const all = descendants(desktop.process.pid);
    const guardian = all.find(({ pid }) => pid === desktop.pid)?.parent;
    return all.find(({ pid }) => pid === guardian)?.state === "T";
  };
  const killed = {
    code: 137,
    output: expect.stringContaining("the guardian of the computer was killed or did not stop"),
  };

  it("ends after SIGTERM though its guardian, its server and its first process are stopped", async () => {
    await using desktop = await attacked("kill -STOP $(pgrep -P 2) 2 1");
    desktop.go();
    await until(() => isStopped(desktop), Boolean, { what: "a guardian that is stopped" });
    // The kernel keeps a namespace's own programs from stopping its first process; this one is stopped from outside.
    const first = descendants(desktop.process.pid).findLast(({ comm }) => comm === "tini");
    process.kill(first?.pid ?? 0, "SIGSTOP");
    desktop.process.kill("SIGTERM");
    await expectNothingLeft(desktop, desktop.tree, 5000);
    expect(await desktop.process.ended).toMatchObject(killed);
  });

  it("ends after kill -9 of the process that was started though its guardian is stopped", async () => {
    await using desktop = await attacked("kill -STOP 2");
    desktop.go();
    await until(() => isStopped(desktop), Boolean, { what: "a guardian that is stopped" });
    desktop.process.kill("SIGKILL");
    await expectNothingLeft(desktop, desktop.tree, 5000);
  });

  it.each(["kill -9 2", "kill -9 -1"])("leaves nothing after %s, and says so on stderr", async (line) => {
    await using desktop = await attacked(line);
    desktop.go();
    await expectNothingLeft(desktop, desktop.tree);
    expect(await desktop.process.ended).toMatchObject(killed);
  });
});

// A second and a half of it is what the server is given.
describe.each(isolations)("a computer with isolation %s whose server is deaf", (isolation) => {
  it("kills a server that doesn't stop", async () => {
    await using desktop = await startLittered({ isolation, computer: { ...computer, stubborn: true } });
    const tree = desktop.tree();
    desktop.process.kill("SIGTERM");
    await expectNothingLeft(desktop, tree, 3500);
    expect(await desktop.process.ended).toMatchObject({
      code: 137,
      output: expect.stringContaining("did not stop within"),
    });
  });
});

describe.concurrent("a computer", () => {
  it.runIf(isRoot)(
    `is isolated by a user namespace where root may make no other, as in many containers${needsRoot}`,
    async () => {
      const wrapper = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"];
      await using desktop = await startLittered({ wrapper });
      expect(desktop.isolation).toBe("user");
    },
  );

  it("is started without a namespace where there may be none, and leaves nothing all the same", async () => {
    const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"';
    const wrapper = ["unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", forbid, "sh"];
    await using desktop = await startLittered({ asSessionUser: true, wrapper });
    expect(desktop.isolation).toBe("none");
    const tree = desktop.tree();
    desktop.process.kill("SIGTERM");
    await expectNothingLeft(desktop, tree);
  });

  it("leaves no zombie where it is a container's first process", async () => {
    const short = "for i in 1 2 3 4 5; do setsid sh -c '(sleep 0.05 &) ; exit 0' & done; wait";
    await using desktop = await lab.start({
      wrapper: isRoot
        ? ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        : ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc"],
      computer: { launches: [short, short] },
    });
    const states = () => descendants(desktop.process.pid).map(({ comm, state }) => `${comm} ${state}`);
    await until(states, (seen) => !seen.some((each) => each.startsWith("sleep") || each.endsWith(" Z")));
    expect(states()).toContain("tini S");
  });

  it("does not take another one on the machine with it", async () => {
    await using one = await startLittered();
    await using other = await startLittered();
    expect(other.display).not.toBe(one.display);
    expect(other.runtimeDir).not.toBe(one.runtimeDir);
    const tree = one.tree();
    const programs = () => ["tini", "Xvfb", "dbus-daemon", "openbox", "xterm", "sleep"].map((comm) => other.find(comm));
    const before = programs();
    expect(before).not.toContain(undefined);
    one.process.kill("SIGTERM");
    await expectNothingLeft(one, tree);
    expect(programs()).toEqual(before);
    expect(await askDisplay(other.display)).toMatchObject({ width: 800, hasWindowManager: true });
    expect(readdirSync(other.runtimeDir)).toContain("bus");
  });

  it("is refused where another one lives, which it leaves alone", async () => {
    await using one = await lab.start();
    await expect(lab.start({ runtimeDir: one.runtimeDir })).rejects.toThrow(/another computer lives in .*\n.*--port/);
    expect(readdirSync(one.runtimeDir)).toContain("bus");
    expect(await askDisplay(one.display)).toBeDefined();
  });

  it("is the only one in its folder though other starts remove what nobody uses meanwhile", async () => {
    const runtimeDir = join(lab.folder, "run", "18765");
    const others = setInterval(() => removeUnused(join(runtimeDir, ".."), ""), 50);
    try {
      for (let round = 0; round < 3; round += 1) {
        await using one = await lab.start({ runtimeDir });
        expect(readdirSync(runtimeDir)).toContain("bus");
        await expect(lab.start({ runtimeDir })).rejects.toThrow(/another computer lives in/);
        expect(await askDisplay(one.display)).toBeDefined();
      }
      expect(readdirSync(join(runtimeDir, "..")).filter((name) => name.startsWith("18765"))).toEqual([]);
    } finally {
      clearInterval(others);
    }
  });

  it("starts where one that could not clean up left its files and its X socket, on the same display", async () => {
    const computer = { display: ":4711" };
    const one = await lab.start({ computer });
    // With a namespace's first process all others end at once: the guardian, and what cleans up behind a killed guardian.
    process.kill(descendants(one.process.pid).filter(({ comm }) => comm === "tini")[1]?.pid ?? 0, "SIGKILL");
    await one.process.ended;
    expect(readdirSync(one.runtimeDir)).toContain("openbox");
    expect(existsSync("/tmp/.X11-unix/X4711")).toBe(true);
    await using again = await lab.start({ runtimeDir: one.runtimeDir, computer });
    expect(again.display).toBe(":4711");
    expect(await askDisplay(":4711")).toMatchObject({ width: 800, hasWindowManager: true });
  });
});
