import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf, SetupError } from "../../src/errors.js";
import { memberText } from "../../src/protocol/json-text.js";
import { jsonSha256 } from "./digests.js";
import { ended, killGroup, runProgram, startGroup, tail } from "./program.js";
import { REFUSED_REQUESTS, type Refusals } from "./refusals.js";
import type { ServedTexts } from "./served.js";
import { parseServed, readTexts } from "./served.js";

/** The daemon and its server reach nothing outside by themselves with these set. */
export const QUIET_ENVIRONMENT: Readonly<Record<string, string>> = {
  CUA_DRIVER_RS_TELEMETRY_ENABLED: "0",
  CUA_DRIVER_RS_UPDATE_CHECK: "0",
};

const ANSWER_MS = 20_000;

/**
 * Reads everything that an executable serves, offline: without a display, without a network, with an empty home that is
 * removed again. Throws a SetupError where the executable doesn't answer as cua-driver does.
 */
export async function readExecutable(executable: string, signal?: AbortSignal): Promise<ServedTexts> {
  return withEmptyHome(async (home, env) => {
    const server = new StdioServer(executable, ["mcp"], { env, cwd: home, signal });
    try {
      const initialize = await server.initialize();
      const tools = await server.request("tools/list", {});
      const resources = await server.request("resources/list", {});
      const reads: string[] = [];
      for (const { uri } of (JSON.parse(resources) as { resources?: { uri: string }[] }).resources ?? []) {
        reads.push(await server.request("resources/read", { uri }));
      }
      const skills = await server.request("skills/list", {});
      const texts = {
        initialize,
        tools,
        resources,
        reads,
        skills,
        refusals: await readRefusals(server),
        skillPack: await readSkillPack(executable, home, env),
      };
      for (const skill of parseServed(texts).skills) {
        // Served from the list's entry, so the two have to be the same.
        const got: unknown = JSON.parse(await server.request("skills/get", { uri: skill.uri }));
        if (jsonSha256(got) !== jsonSha256({ skill })) {
          throw new SetupError(`skills/get of ${skill.uri} answers something else than its entry in skills/list`);
        }
      }
      return texts;
    } finally {
      await server.close();
    }
  });
}

async function readRefusals(server: StdioServer): Promise<Refusals> {
  const refusals: Partial<Refusals> = {};
  for (const [name, [method, params]] of Object.entries(REFUSED_REQUESTS)) {
    const answer = await server.answer(method, params);
    const error = memberText(answer, "error");
    if (error === undefined)
      throw new SetupError(`cua-driver mcp took a ${method} that is wrong: ${answer.slice(0, 300)}`);
    refusals[name as keyof Refusals] = error;
  }
  return refusals as Refusals;
}

/** Lays the skill down in the empty home, as for an agent that keeps its skills in `.claude/`, and reads its files. */
async function readSkillPack(executable: string, home: string, env: NodeJS.ProcessEnv) {
  await mkdir(join(home, ".claude"));
  const run = await runProgram(executable, ["mcp-config", "--client", "claude"], {
    env,
    cwd: home,
    timeoutMs: ANSWER_MS,
  });
  if (run.code !== 0) throw new SetupError(`cua-driver mcp-config failed:\n${run.stderr}`);
  // Versions before 0.37.0 lay none down.
  return readTexts(join(home, ".cua-driver/skills/cua-driver"));
}

/** Runs `use` with a home that is empty and an environment that has nothing of ours but the PATH. */
export async function withEmptyHome<T>(use: (home: string, env: NodeJS.ProcessEnv) => Promise<T>): Promise<T> {
  const home = await mkdtemp(join(tmpdir(), "agentenv-cua-"));
  const env = { ...QUIET_ENVIRONMENT, HOME: home, TMPDIR: home, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };
  try {
    return await use(home, env);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** A program that speaks MCP on its stdio, asked one request at a time; answers are the JSON text of `result`. */
export class StdioServer {
  readonly #child: ReturnType<typeof startGroup>;
  readonly #end: Promise<unknown>;
  readonly #log: () => string;
  #failure = "";
  readonly #signal: AbortSignal | undefined;
  #unread = "";
  #arrived: (() => void) | undefined;
  #gone = false;
  #id = 0;

  constructor(
    executable: string,
    args: readonly string[],
    options: { env: NodeJS.ProcessEnv; cwd: string; signal?: AbortSignal | undefined },
  ) {
    this.#signal = options.signal;
    this.#child = startGroup(executable, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
    this.#log = tail(this.#child.stderr);
    this.#end = ended(this.#child)
      .catch((thrown: unknown) => {
        this.#failure = messageOf(thrown);
      })
      .finally(() => {
        this.#gone = true;
        this.#arrived?.();
      });
    this.#child.stdin?.on("error", () => {});
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#unread += text;
      this.#arrived?.();
    });
  }

  async initialize(): Promise<string> {
    const clientInfo = { name: "agent-env", version: "1" };
    const result = await this.request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    this.#child.stdin?.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return result;
  }

  /** The result as JSON text. An answer that is an error, or none within 20 s, is a SetupError. */
  async request(method: string, params: object): Promise<string> {
    const line = await this.answer(method, params);
    const start = `{"jsonrpc":"2.0","id":${this.#id},"result":`;
    if (!line.startsWith(start)) throw new SetupError(`cua-driver mcp answered ${method} with: ${line.slice(0, 300)}`);
    return line.slice(start.length, -1);
  }

  /** The whole line that answers a request. */
  async answer(method: string, params: object): Promise<string> {
    this.#id += 1;
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params })}\n`);
    const deadline = Date.now() + ANSWER_MS;
    for (;;) {
      this.#signal?.throwIfAborted();
      const at = this.#unread.indexOf("\n");
      if (at >= 0) {
        const line = this.#unread.slice(0, at);
        this.#unread = this.#unread.slice(at + 1);
        return line;
      }
      if (this.#gone)
        throw new SetupError(`cua-driver mcp ended before it answered ${method}:\n${this.#failure}${this.#log()}`);
      if (Date.now() >= deadline) throw new SetupError(`cua-driver mcp didn't answer ${method} within ${ANSWER_MS} ms`);
      await this.#wait(deadline - Date.now());
    }
  }

  async close(): Promise<void> {
    killGroup(this.#child);
    await this.#end;
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#signal?.removeEventListener("abort", done);
        this.#arrived = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#signal?.addEventListener("abort", done, { once: true });
      this.#arrived = done;
    });
  }
}
