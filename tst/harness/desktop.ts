import { spawn } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stage } from "../../src/desktop/staging.js";
import { type Account, accountOf, currentAccount } from "../../src/desktop/users.js";
import { packageRoot } from "../../src/package-root.js";
import type { Up } from "../fakes/computer-server.js";
import type { Computer, Start } from "../fakes/computer-start.js";
import { until } from "./until.js";

export const isRoot = process.getuid?.() === 0;
/** Ends the name of a test or a suite that only root runs: why it is skipped where it is. */
export const needsRoot = isRoot ? "" : " (skipped: only root can start a computer for another user)";
/** Whose the computers of the tests are. */
export const sessionUser: Account = isRoot ? accountOf("agent") : currentAccount();

const fakes = fileURLToPath(new URL("../fakes/", import.meta.url));

export interface RunningDesktop extends Up, AsyncDisposable {
  /** What was started: `agentenv up` would have this pid. */
  readonly process: Ended & { readonly pid: number; kill(signal: NodeJS.Signals): void; write(text: string): void };
  /** Pids and start times of all that runs now, as the machine sees them. */
  tree(): Set<string>;
  /** The pid of one of the computer's programs, as the machine sees it. */
  find(comm: string): number | undefined;
  /** The socket and the lock of its X server that are there, unless another X server's took their place. */
  xFiles(): string[];
}

interface Ended {
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; output: string }>;
}

export interface StartOptions {
  readonly isolation?: Start["isolation"];
  readonly computer?: Computer;
  readonly runtimeDir?: string;
  readonly user?: string;
  /** Put before the command, such as an `unshare` that stands for a container; run as the session user where that starts it. */
  readonly wrapper?: readonly string[];
  /** A terminal of its own, to which `write` types. */
  readonly terminal?: boolean;
  /** Started as the session user itself, not as root. */
  readonly asSessionUser?: boolean;
  /** Another clone, and the Node it is started with. */
  readonly clone?: string;
  readonly node?: string;
  readonly dataDir?: string;
}

/** A folder where staged programs and runtime folders lie, shared by the tests of a file. */
export class DesktopLab implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "desktops-"));
  readonly dataDir = join(this.folder, "data");
  #count = 0;

  constructor() {
    chmodSync(this.folder, 0o755);
    for (const name of ["run", "own"]) mkdirSync(join(this.folder, name));
    if (!isRoot) return;
    chownSync(join(this.folder, "own"), sessionUser.uid, sessionUser.gid);
    // Once and here, or the first computers, started side by side, would each copy Node and the packages.
    this.#stage();
  }

  #stage() {
    return stage({ dataDir: this.dataDir, programDir: packageRoot, folders: [fakes], gid: sessionUser.gid });
  }

  runtimeDir(asSessionUser = false): string {
    this.#count += 1;
    return join(this.folder, asSessionUser ? "own" : "run", `${this.#count}.d`);
  }

  /** The command that starts a computer. */
  command(options: StartOptions): { argv: string[]; runtimeDir: string } {
    const runtimeDir = options.runtimeDir ?? this.runtimeDir(options.asSessionUser);
    const start: Start = {
      ...(options.user === undefined && isRoot && !options.asSessionUser ? { user: sessionUser.name } : {}),
      ...(options.user === undefined ? {} : { user: options.user }),
      runtimeDir,
      dataDir: options.dataDir ?? this.dataDir,
      ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
      computer: options.computer ?? {},
    };
    const { node, script, become } = this.#starter(options);
    const command = [...become, ...(options.wrapper ?? []), node, script, JSON.stringify(start)];
    if (!options.terminal) return { argv: command, runtimeDir };
    const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    return { argv: ["script", "-qfec", `exec ${line}`, "/dev/null"], runtimeDir };
  }

  /** The clone may lie where the session user can't read: it then starts from a copy, as root made it. */
  #starter(options: StartOptions): { node: string; script: string; become: string[] } {
    const script = join(fakes, "computer-start.ts");
    if (!options.asSessionUser || !isRoot) {
      const { clone = packageRoot, node = process.execPath } = options;
      return { node, script: join(clone, relative(packageRoot, script)), become: [] };
    }
    const staged = this.#stage();
    const { uid, gid, home } = sessionUser;
    const ids = ["--reuid", String(uid), "--regid", String(gid), "--init-groups"];
    const environment = ["env", "-i", `HOME=${home}`, "PATH=/usr/bin:/bin"];
    return { node: staged.node, script: staged.locate(script), become: ["setpriv", ...ids, "--", ...environment] };
  }

  /** Starts a computer and waits until it is up. */
  async start(options: StartOptions = {}): Promise<RunningDesktop> {
    const { argv } = this.command(options);
    const [file = "", ...args] = argv;
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], cwd: "/" });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    const ended = new Promise<Awaited<Ended["ended"]>>((resolve) =>
      child.once("close", (code, signal) => resolve({ code, signal, output })),
    );
    const line = await Promise.race([
      until(
        () => output.split(/\r?\n/).find((each) => each.startsWith('{"pid"') && each.endsWith("}")),
        (found) => found !== undefined,
        { ms: 30_000, what: "a computer that is up" },
      ),
      ended.then(({ code }) => {
        throw new Error(`it ended with ${code}: ${output}`);
      }),
    ]);
    const pid = child.pid ?? 0;
    // An unshare that forked passes no signal on.
    const first = options.wrapper?.includes("--fork") ? (descendants(pid)[1]?.pid ?? pid) : pid;
    const signal = (name: NodeJS.Signals) => {
      if (child.exitCode === null && child.signalCode === null) process.kill(first, name);
    };
    const up = JSON.parse(line ?? "") as Up;
    const number = up.display.slice(1);
    const xFiles = [`/tmp/.X${number}-lock`, `/tmp/.X11-unix/X${number}`].map((path) => [path, fileAt(path)] as const);
    return {
      ...up,
      process: {
        pid,
        ended,
        kill: signal,
        write: (text) => void child.stdin.write(text),
      },
      tree: () => new Set(descendants(pid).map(({ id }) => id)),
      find: (comm) => descendants(pid).find((each) => each.comm === comm)?.pid,
      xFiles: () => xFiles.flatMap(([path, file]) => (file !== undefined && fileAt(path) === file ? [path] : [])),
      async [Symbol.asyncDispose]() {
        signal("SIGTERM");
        await ended;
      },
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Tells a file from another one that gets its inode later. */
export function fileAt(path: string): string | undefined {
  const there = lstatSync(path, { throwIfNoEntry: false });
  return there && `${there.ino}@${there.birthtimeMs}`;
}

export interface ProcessState {
  readonly pid: number;
  /** Tells it from another process that gets its pid later. */
  readonly id: string;
  readonly parent: number;
  readonly comm: string;
  readonly state: string;
}

export function allProcesses(): ProcessState[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const comm = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [
        {
          pid: Number(name),
          id: `${name}@${fields[19]} ${comm}`,
          parent: Number(fields[1]),
          comm,
          state: fields[0] ?? "",
        },
      ];
    } catch {
      return [];
    }
  });
}

/** A process and all that descend from it. */
export function descendants(root: number): ProcessState[] {
  const all = allProcesses();
  const found = all.filter(({ pid }) => pid === root);
  for (const parent of found)
    found.push(...all.filter((each) => each.parent === parent.pid && each.pid !== parent.pid));
  return found;
}

/** Which of the processes of a `tree()` are still there. A zombie of the machine's own init or of the tests is theirs to reap. */
export function alive(tree: ReadonlySet<string>): string[] {
  return allProcesses().flatMap(({ id, parent, state }) =>
    tree.has(id) && !(state === "Z" && (parent === 1 || parent === process.pid)) ? [`${id} (${state})`] : [],
  );
}
