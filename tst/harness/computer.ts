import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { McpClient } from "../../src/mcp/client.js";
import { packageRoot } from "../../src/package-root.js";

/** What `agentenv up --json` prints when the computer is ready. */
export interface Ready {
  pid: number;
  url: string;
  mcp: string;
  display: string;
  socket: string;
  dataDir: string;
  runDir: string;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** `agentenv up` as a process of its own, through the built command line that a user runs. */
export class RunningCommand implements AsyncDisposable {
  stdout = "";
  stderr = "";
  readonly exited: Promise<Exit>;

  constructor(readonly child: ChildProcess) {
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      this.stderr += text;
    });
    this.exited = new Promise((resolve) => {
      child.once("close", (code, signal) => resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** The line that says it is ready; an exit before it is an error with what was printed. */
  async ready(ms = 60_000): Promise<Ready> {
    const line = await Promise.race([
      new Promise<string>((resolve) => {
        const look = () => {
          const found = this.stdout.split("\n").find((each) => each.startsWith("{") && each.endsWith("}"));
          if (found !== undefined) resolve(found);
        };
        this.child.stdout?.on("data", look);
        look();
      }),
      this.exited.then((exit) => {
        throw new Error(
          `it exited with ${exit.code ?? exit.signal} before it was ready:\n${exit.stdout}\n${exit.stderr}`,
        );
      }),
      new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error(`not ready after ${ms} ms:\n${this.stdout}\n${this.stderr}`)), ms).unref();
      }),
    ]);
    return JSON.parse(line) as Ready;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    await this.exited;
  }
}

/** The command line as it is built. */
export const agentenvMain = join(packageRoot, "dist/src/cli/main.js");

/** Runs the built command line, or that of a copy of the package. */
export function agentenv(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  main = agentenvMain,
): RunningCommand {
  return new RunningCommand(
    spawn(process.execPath, [main, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    }),
  );
}

/** A computer that runs, and what is open on it. */
export interface Computer extends Ready, AsyncDisposable {
  readonly command: RunningCommand;
  /** An MCP session, closed with the computer. */
  connect(options?: { role?: string }): Promise<McpClient>;
  /** Invokes a framework extension's method. */
  invoke(path: string, params?: object): Promise<{ status: number; body: Record<string, unknown> }>;
  /** Runs a command on the computer and answers what it wrote to standard output. */
  run(...argv: string[]): Promise<string>;
}

/** Starts a computer on free ports and waits until it is ready. */
export async function startComputer(env = "bundles/desk", args: readonly string[] = []): Promise<Computer> {
  return await computerOf(agentenv(["up", env, "--port", "0", "--json", ...args]));
}

/** The computer of an `agentenv up --json`, once it is ready. */
export async function computerOf(command: RunningCommand): Promise<Computer> {
  const sessions: McpClient[] = [];
  let ready: Ready;
  try {
    ready = await command.ready();
  } catch (thrown) {
    await command[Symbol.asyncDispose]();
    throw thrown;
  }
  const { url } = ready;
  const invoke = async (path: string, params?: object) => {
    const response = await fetch(`${url}/agentenv/ext/${path}`, {
      ...(params === undefined ? {} : { method: "POST", body: JSON.stringify(params) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return {
    ...ready,
    command,
    async connect(options = {}) {
      const client = await McpClient.connect(url, options);
      sessions.push(client);
      return client;
    },
    invoke,
    async run(...argv) {
      const { body } = await invoke("computer-exec/run", { argv, request_id: crypto.randomUUID(), timeout_s: 30 });
      if (body.exit_code !== 0) throw new Error(`${argv.join(" ")}: ${JSON.stringify(body)}`);
      return String(body.stdout);
    },
    async [Symbol.asyncDispose]() {
      for (const client of sessions) await client.close().catch(() => {});
      await command[Symbol.asyncDispose]();
    },
  };
}

/** A folder with an `env.toml` of this text, for as long as the test needs it. */
export function envFolder(toml: string): { folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), "env-"));
  writeFileSync(join(folder, "env.toml"), toml);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Lets the modules of a folder import this package, as `npm install` of an env does it. */
export function linkPackage(folder: string): void {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageRoot, join(folder, "node_modules", "agent-env"));
}
