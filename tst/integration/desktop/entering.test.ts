import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { stage } from "../../../src/desktop/staging.js";
import { packageRoot } from "../../../src/package-root.js";
import { DesktopLab, descendants, isRoot, needsRoot, type ProcessState, sessionUser } from "../../harness/desktop.js";
import { until } from "../../harness/until.js";

const lab = new DesktopLab();
afterAll(() => lab[Symbol.dispose]());

/** What a start that is refused prints; it must be for people. */
function refusal(options: Parameters<DesktopLab["command"]>[0]): string {
  const [file = "", ...args] = lab.command(options).argv;
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8", timeout: 30_000 });
  expect(status).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).not.toMatch(/^\s+at /m);
  return stderr;
}

function uidOf({ pid }: ProcessState): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

describe("starting a computer", () => {
  it("hands a secret over without a trace of it in any command line, environment or file", async () => {
    const secret = "c0ffee-hash-of-a-token";
    process.env.AGENTENV_TEST_SECRET = secret;
    await using desktop = await lab.start({ computer: { secret, apps: ["xterm"] } });
    delete process.env.AGENTENV_TEST_SECRET;
    expect(desktop.secret).toBe(secret);
    expect(desktop.environment).not.toHaveProperty("AGENTENV_TEST_SECRET");
    const all = descendants(desktop.process.pid);
    expect(all.length).toBeGreaterThan(8);
    for (const { pid, comm } of all) {
      for (const file of ["cmdline", "environ"]) {
        // The process that was started had it in its command line, which the test wrote; it isn't the session's any more.
        expect(readFileSync(`/proc/${pid}/${file}`, "utf8"), `${comm} ${file}`).not.toContain(secret);
      }
      expect(readFileSync(`/proc/${pid}/fd/0`, { encoding: "utf8" }), `${comm} stdin`).toBe("");
    }
    const beside = join(desktop.runtimeDir, "..");
    expect(readdirSync(beside).filter((name) => name.startsWith(basename(desktop.runtimeDir)))).toEqual([
      basename(desktop.runtimeDir),
      `${basename(desktop.runtimeDir)}.lock`,
    ]);
  });

  it("gives the session user a runtime folder that nobody else can read", async () => {
    await using desktop = await lab.start();
    expect(statSync(desktop.runtimeDir)).toMatchObject({ uid: sessionUser.uid, mode: 0o40700 });
  });

  it("leaves no folder and no lock when it fails", () => {
    const runtimeDir = lab.runtimeDir();
    expect(refusal({ runtimeDir, computer: { display: "none" } })).toMatch(/is no display/);
    expect(readdirSync(join(runtimeDir, "..")).filter((name) => name.startsWith(basename(runtimeDir)))).toEqual([]);
  });

  it("is refused as another user than one is", () => {
    const options = isRoot ? { asSessionUser: true, user: "root" } : { user: "root" };
    expect(refusal(options)).toMatch(/^only root can start a computer for root; this is .*\nstart it as root/);
  });

  it.runIf(isRoot)(`is refused for a user that does not exist, with the line that makes it${needsRoot}`, () => {
    expect(refusal({ user: "nosuchuser" })).toBe(
      "the session user nosuchuser does not exist\ncreate it: useradd --create-home --shell /bin/bash nosuchuser\n",
    );
  });

  it.runIf(isRoot)(`is refused for root, and for a user without a home${needsRoot}`, () => {
    expect(refusal({ user: "root" })).toMatch(/^a computer never runs as root\n/);
    expect(refusal({ user: "nobody" })).toMatch(/^the home folder of the session user nobody does not exist/);
  });

  it.runIf(isRoot).each([
    ["Xvfb", "xvfb"],
    ["tini", "tini"],
    ["openbox", "openbox"],
    ["dbus-daemon", "dbus"],
  ])(`says how to install %s where it is missing${needsRoot}`, (program, name) => {
    const hide = 'mount --bind /dev/null "$0" && exec "$@"';
    const wrapper = ["unshare", "--mount", "sh", "-c", hide, `/usr/bin/${program}`];
    expect(refusal({ wrapper })).toMatch(
      new RegExp(`^${program} is not installed, and a computer needs it\\n(sudo )?apt-get install -y ${name}\\n`),
    );
  });
});

describe.runIf(isRoot)(`starting a computer as root${needsRoot}`, () => {
  it("leaves nothing of it running as root but what waits for its end", async () => {
    await using desktop = await lab.start({ isolation: "pid", computer: { apps: ["xterm"] } });
    const all = descendants(desktop.process.pid);
    const asRoot = all.filter((each) => uidOf(each) === 0).map(({ comm }) => comm);
    expect(asRoot).toEqual(["tini", "unshare", "tini", "sh", "timeout", "unshare"]);
    expect(new Set(all.map(uidOf))).toEqual(new Set([0, sessionUser.uid]));
    await using other = await lab.start({ isolation: "none" });
    expect(new Set(descendants(other.process.pid).map(uidOf))).toEqual(new Set([sessionUser.uid]));
  });

  it.each(["pid", "user", "none"] as const)(
    "closes the memory of its server and its guardian to its own programs, with isolation %s",
    async (isolation) => {
      const look = [
        "import os, sys",
        "for pid in sys.argv[2:]:",
        "  for name in ('mem', 'environ', 'maps', 'fd'):",
        "    try: os.open(f'/proc/{pid}/{name}', os.O_RDONLY); said = 'open'",
        "    except OSError as error: said = error.strerror",
        "    print(pid == str(os.getppid()), name, said, file=open(sys.argv[1] + '.new', 'a'))",
        "os.rename(sys.argv[1] + '.new', sys.argv[1])",
      ].join("\n");
      // The shell is a child of the server; itself it can look into.
      const server = "$(ps -o ppid= -p $$)";
      const guardian = `$(ps -o ppid= -p ${server})`;
      const seen = join(lab.folder, "own", `seen-${isolation}`);
      const launches = [`python3 -c "${look}" ${seen} ${server} ${guardian} $$`];
      await using _ = await lab.start({ isolation, computer: { launches } });
      await until(() => existsSync(seen), Boolean, { what: "what a program of the computer could open" });
      const each = ["mem", "environ", "maps", "fd"];
      expect(readFileSync(seen, "utf8").trim().split("\n")).toEqual([
        ...[...each, ...each].map((name) => `False ${name} Permission denied`),
        ...each.map((name) => `True ${name} open`),
      ]);
    },
  );

  it("works from a clone and a Node that the session user can't read", async () => {
    const clone = join(lab.folder, "private");
    mkdirSync(clone, { mode: 0o700 });
    for (const part of ["dist", "package.json", "mcp.json", "tst/fakes"]) {
      cpSync(join(packageRoot, part), join(clone, part), { recursive: true });
    }
    symlinkSync(join(packageRoot, "node_modules"), join(clone, "node_modules"));
    const node = join(clone, "node");
    try {
      linkSync(process.execPath, node);
    } catch {
      cpSync(process.execPath, node);
    }
    await using desktop = await lab.start({ clone, node });
    expect(desktop.uid).toBe(sessionUser.uid);
    expect([desktop.node, desktop.program].every((path) => path.startsWith(`${lab.dataDir}/program/`))).toBe(true);
    const writable = ["-user", sessionUser.name, "-o", "-perm", "/022", "!", "-type", "l"];
    expect(execFileSync("find", [lab.dataDir, ...writable], { encoding: "utf8" })).toBe("");
  });

  it("is refused with a data folder that the session user can't enter", () => {
    const dataDir = join(lab.folder, "hidden");
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o700);
    const runtimeDir = lab.runtimeDir();
    expect(refusal({ dataDir, runtimeDir })).toMatch(/can't read .*hidden.*\nset AGENTENV_DATA/);
    expect(existsSync(runtimeDir)).toBe(false);
  });
});

describe.runIf(isRoot)(`the staged program${needsRoot}`, () => {
  const options = { programDir: packageRoot, gid: sessionUser.gid };

  it("is made once, then used again without a copy", () => {
    const dataDir = join(lab.folder, "once");
    const first = stage({ ...options, dataDir });
    const made = statSync(first.locate(join(packageRoot, "dist"))).ino;
    const begun = performance.now();
    const second = stage({ ...options, dataDir });
    expect(performance.now() - begun).toBeLessThan(250);
    expect(second.inUse).toEqual(first.inUse);
    expect(statSync(second.locate(join(packageRoot, "dist"))).ino).toBe(made);
  });

  it("holds what the program needs, and nothing that is for development alone", () => {
    const dataDir = join(lab.folder, "once");
    const [packages = "", program = ""] = stage({ ...options, dataDir }).inUse;
    expect(readdirSync(join(packages, "node_modules"))).toEqual(
      expect.arrayContaining(["fastify", "pino", "sharp", "zod"]),
    );
    expect(readdirSync(join(packages, "node_modules"))).not.toEqual(expect.arrayContaining(["vitest"]));
    expect(readdirSync(join(packages, "node_modules"))).not.toEqual(expect.arrayContaining(["typescript"]));
    expect(readdirSync(join(program, "agent-env")).sort()).toEqual([
      "bundles",
      "dist",
      "mcp.json",
      "package.json",
      "skills",
    ]);
    const script = 'import("fastify").then(() => import("sharp")).then(() => console.log("loaded"))';
    const run = execFileSync(process.execPath, ["-e", script], { cwd: join(program, "agent-env"), encoding: "utf8" });
    expect(run).toBe("loaded\n");
  });

  it("has a folder of a person's own beside it, for the session user's group alone, whose imports find us", () => {
    const folder = join(lab.folder, "private-env");
    mkdirSync(folder, { mode: 0o700 });
    const source =
      'import { SetupError } from "agent-env";\nimport { z } from "zod";\nconsole.log(SetupError.name, typeof z);\n';
    writeFileSync(join(folder, "env.mjs"), source, { mode: 0o600 });
    const staged = stage({ ...options, dataDir: join(lab.folder, "once"), folders: [folder] });
    const copy = staged.locate(join(folder, "env.mjs"));
    const become = ["--reuid", String(sessionUser.uid), "--regid", String(sessionUser.gid), "--init-groups"];
    expect(execFileSync("setpriv", [...become, staged.node, copy], { cwd: "/", encoding: "utf8" })).toBe(
      "SetupError object\n",
    );
    const stranger = spawnSync("setpriv", ["--reuid", "65534", "--regid", "65534", "--clear-groups", "cat", copy]);
    expect(stranger.status).not.toBe(0);
    expect(() => staged.locate("/etc/passwd")).toThrow(/neither/);
  });

  it("refuses a folder that is too large to be copied at each change", () => {
    const folder = join(lab.folder, "large-env");
    mkdirSync(folder);
    ftruncateSync(openSync(join(folder, "data"), "w"), 65 * 1024 * 1024);
    expect(() => stage({ ...options, dataDir: join(lab.folder, "once"), folders: [folder] })).toThrow(/too large/);
  });

  it("forgets what nobody used for a day, unless a computer holds it", () => {
    const dataDir = join(lab.folder, "old");
    const store = join(dataDir, "program");
    const old = new Date(Date.now() - 25 * 3600 * 1000);
    for (const name of ["unused", "held", "young"]) {
      mkdirSync(join(store, name, "inside"), { recursive: true });
      if (name !== "young") utimesSync(join(store, name), old, old);
    }
    const hold = ["-s", join(store, "held"), process.execPath, "-e"];
    const url = JSON.stringify(new URL("../../../dist/src/desktop/staging.js", import.meta.url).href);
    const program = `import(${url}).then(({ stage }) => stage(${JSON.stringify({ ...options, dataDir })}))`;
    execFileSync("flock", [...hold, program]);
    expect(readdirSync(store)).toEqual(expect.arrayContaining(["held", "young"]));
    expect(readdirSync(store)).not.toContain("unused");
  });
});
