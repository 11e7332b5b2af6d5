import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { runtimeFolder } from "../../src/desktop/folders.js";
import { agentenvMain, envFolder, type Ready, RunningCommand } from "../harness/computer.js";
import { descendants, isRoot, sessionUser } from "../harness/desktop.js";
import { until } from "../harness/until.js";

const ENV = 'type = "computer"\ndriver = "cua-driver"\n';
/** Own namespaces, as root or as anybody. */
const UNSHARE = isRoot ? ["unshare"] : ["unshare", "--user", "--map-current-user", "--keep-caps"];

/** `agentenv up` in namespaces of its own, once `prepare` has run in them. */
class Confined implements AsyncDisposable {
  private constructor(
    private readonly command: RunningCommand,
    private readonly namespace: string,
    readonly ready: Ready,
  ) {}

  static async start(namespace: "--mount" | "--net", prepare: string, folder: string): Promise<Confined> {
    const up = [process.execPath, agentenvMain, "up", folder, "--port", "0", "--json"];
    const [file = "", ...args] = [...UNSHARE, namespace, "sh", "-c", `${prepare} && exec "$@"`, "sh", ...up];
    const command = new RunningCommand(spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] }));
    try {
      return new Confined(command, namespace, await command.ready());
    } catch (thrown) {
      await command[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get log(): string {
    return this.command.stderr;
  }

  /** Runs a command in the same namespaces, and answers its exit code and output. */
  async run(...argv: string[]): Promise<{ code: number | null; stdout: string }> {
    const user = isRoot ? [] : ["--user", "--preserve-credentials"];
    const enter = ["nsenter", "--target", String(this.command.child.pid), ...user, this.namespace];
    const [file = "", ...args] = [...enter, "--", ...argv];
    const { code, stdout } = await new RunningCommand(spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] })).exited;
    return { code, stdout };
  }

  /** Kills the daemon, whose pid file says what its pid is in the computer's own namespace, and waits until it is gone. */
  async killDaemon(): Promise<void> {
    const daemons = () => this.#tree().filter(({ comm, state }) => comm === "cua-driver" && state !== "Z");
    const before = new Set(daemons().map(({ id }) => id));
    expect(before.size).toBe(1);
    for (const { pid } of daemons()) process.kill(pid, "SIGKILL");
    await until(daemons, (all) => all.every(({ id }) => !before.has(id)), { what: "the daemon's end" });
  }

  #tree() {
    return descendants(this.command.child.pid ?? 0);
  }

  /** Runs the command line there, as a person would. */
  agentenv(...args: string[]): Promise<{ code: number | null; stdout: string }> {
    return this.run(process.execPath, agentenvMain, ...args);
  }

  async call(
    tool: string,
    args: object = {},
  ): Promise<{ isError?: boolean; structuredContent?: Record<string, unknown> }> {
    const { stdout } = await this.agentenv("call", this.ready.url, tool, JSON.stringify(args), "--json");
    return JSON.parse(stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.command[Symbol.asyncDispose]();
  }
}

describe("a computer whose disk is full where the daemon writes", () => {
  it("says what couldn't be written, goes on with all that writes nothing, and survives a restart of the daemon", async () => {
    using env = envFolder(ENV);
    const { home, uid, gid } = sessionUser;
    const mount = `mount -t tmpfs -o size=400k,uid=${uid},gid=${gid},mode=755 tmpfs ${home}`;
    await using computer = await Confined.start("--mount", mount, env.folder);
    const fill = `dd if=/dev/zero of=${home}/fill bs=1k 2>/dev/null; [ "$(df --output=avail ${home} | tail -1)" -eq 0 ]`;
    expect((await computer.run("sh", "-c", fill)).code).toBe(0);

    const shot = await computer.call("get_desktop_state", { screenshot_out_file: `${home}/shot.png` });
    expect(shot.isError).toBe(true);
    for (const [tool, args] of [
      ["computer_screenshot", {}],
      ["computer_type", { text: "there is no room" }],
      ["press_key", { scope: "desktop", key: "shift" }],
      ["get_screen_size", {}],
    ] as const) {
      expect([tool, (await computer.call(tool, args)).isError ?? false]).toEqual([tool, false]);
    }
    await computer.killDaemon();
    await until(
      () => computer.call("get_screen_size"),
      ({ isError }) => isError !== true,
      { ms: 15_000 },
    );
    expect((await computer.agentenv("ready", computer.ready.url)).code).toBe(0);

    await computer.run("rm", `${home}/fill`);
    const written = await computer.call("get_desktop_state", { screenshot_out_file: `${home}/shot.png` });
    expect(written.isError).not.toBe(true);
  });

  it("where the daemon's socket and its pid file lie, goes on, and has the daemon back after a restart", async () => {
    using env = envFolder(ENV);
    const { uid, gid } = sessionUser;
    const run = dirname(runtimeFolder(1));
    const mount = `mkdir -p ${run} && mount -t tmpfs -o size=400k,uid=${isRoot ? 0 : uid},gid=${isRoot ? 0 : gid},mode=755 tmpfs ${run}`;
    await using computer = await Confined.start("--mount", mount, env.folder);
    const { runDir, url } = computer.ready;
    const fill = `dd if=/dev/zero of=${runDir}/fill bs=1k 2>/dev/null; [ "$(df --output=avail ${runDir} | tail -1)" -eq 0 ]`;
    expect((await computer.run("sh", "-c", fill)).code).toBe(0);
    for (const [tool, args] of [
      ["computer_screenshot", {}],
      ["computer_type", { text: "there is no room" }],
      ["get_screen_size", {}],
    ] as const) {
      expect([tool, (await computer.call(tool, args)).isError ?? false]).toEqual([tool, false]);
    }
    await computer.killDaemon();
    expect((await computer.agentenv("ready", url, "--wait", "15")).code).toBe(0);
    expect((await computer.call("get_screen_size")).isError).not.toBe(true);
  });
});

describe("a computer without any network", () => {
  it("is ready, its tools answer, and nothing tries to reach out", async () => {
    using env = envFolder(ENV);
    await using computer = await Confined.start("--net", "ip link set lo up", env.folder);
    const { url } = computer.ready;
    expect((await computer.agentenv("ready", url)).code).toBe(0);
    const tools = await computer.agentenv("tools", url, "--json");
    expect(JSON.parse(tools.stdout)).toHaveLength(73);
    for (const [tool, args] of [
      ["get_screen_size", {}],
      ["computer_screenshot", {}],
      ["check_permissions", {}],
      ["health_report", {}],
      ["get_guide", {}],
      ["list_apps", {}],
    ] as const) {
      expect([tool, (await computer.call(tool, args)).isError ?? false]).toEqual([tool, false]);
    }
    await computer.killDaemon();
    await until(
      () => computer.call("get_screen_size"),
      ({ isError }) => isError !== true,
      { ms: 15_000 },
    );
    // Whoever asks for another machine, by name or address, is counted by the kernel.
    const counter = async (protocol: string, name: string) => {
      const { stdout } = await computer.run("cat", "/proc/net/snmp");
      const [names = "", values = ""] = stdout.split("\n").filter((line) => line.startsWith(`${protocol}: `));
      return Number(values.split(" ")[names.split(" ").indexOf(name)]);
    };
    expect(await counter("Ip", "OutNoRoutes")).toBe(0);
    expect(await counter("Udp", "OutDatagrams")).toBe(0);
    const six = await computer.run("sh", "-c", "cat /proc/net/snmp6 2>/dev/null || :");
    expect(six.stdout.match(/^(?:Ip6OutNoRoutes|Udp6OutDatagrams)\s+[1-9].*$/gm)).toBeNull();
    await computer.run("bash", "-c", "echo >/dev/udp/192.0.2.1/9; echo >/dev/tcp/192.0.2.1/9");
    expect(await counter("Ip", "OutNoRoutes")).toBeGreaterThan(0);
  });
});
