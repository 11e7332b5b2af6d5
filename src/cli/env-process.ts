import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { LastLines } from "../desktop/last-lines.js";
import { endOf, killGroup } from "../desktop/process-group.js";
import { SetupError } from "../errors.js";
import { shellWord } from "../shell-word.js";

/** How long `up` may take: its own deadline is 60 s, after what a first start prepares. */
const READY_MS = 180_000;
/** `up` promises to be gone within 2 s. */
const STOP_MS = 10_000;
/** Lines of what a failed start wrote last. */
const SHOWN = 15;
const MAIN = fileURLToPath(new URL("main.js", import.meta.url));

/** Settings of whoever puts an env, which are none of the env's own. */
const NOT_ITS_OWN = { ENVIRONMENT_NAME: "", AGENTENV_COMPUTER_SETTINGS: "" };

/**
 * Ends the env when whoever started it is gone, however that ended: then its end of the pipe is closed. The files that were
 * the env's alone go with it.
 */
const STOP_ORPHAN = 'cat >/dev/null; kill -TERM "$1"; rm -rf -- "$2"';

/** What is read of the line that `up --json` prints. */
const ReadyLine = z.object({ url: z.string() });

export interface EnvStart {
  /** Of the copy that is started. */
  readonly folder: string;
  /** The env's own folder, for messages. */
  readonly source: string;
  /** Removed where whoever starts it is killed; it is theirs to remove otherwise. */
  readonly scratch: string;
  /** For messages. */
  readonly id: string;
  readonly user?: string;
  /** Where the skills lie that it includes by digest. */
  readonly store: string;
  /** Gives the start up, and stops what has started; its reason is thrown. */
  readonly signal: AbortSignal;
}

/**
 * An env that `agentenv up` serves on a free port of this machine, as a process of its own and a group of its own. As root it
 * has become the session user. Closing it stops it, and is over when nothing of it is left.
 */
export class EnvProcess implements AsyncDisposable {
  private constructor(
    private readonly child: ChildProcess,
    private readonly watcher: ChildProcess,
    private readonly ended: Promise<string>,
    readonly url: string,
    /** From its start until it was ready, in milliseconds. */
    readonly readyMs: number,
  ) {}

  /** Starts an env and waits until it is ready. Throws a SetupError with what it said last where it doesn't become so. */
  static async start({ folder, source, scratch, id, user, store, signal }: EnvStart): Promise<EnvProcess> {
    signal.throwIfAborted();
    const started = performance.now();
    const asUser = user === undefined ? [] : ["--user", user];
    const child = spawn(
      process.execPath,
      [MAIN, "up", folder, "--port", "0", "--host", "127.0.0.1", "--json", ...asUser],
      {
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, NO_COLOR: "1", ...NOT_ITS_OWN, AGENTENV_STORE: store },
      },
    );
    const ended = endOf(child);
    const watcher = spawn("sh", ["-c", STOP_ORPHAN, "sh", String(child.pid), scratch], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    watcher.once("error", () => {});
    const said = new LastLines();
    const first = Promise.withResolvers<string>();
    said.follow(child, (line) => {
      const parsed = line.startsWith("{") ? ReadyLine.safeParse(jsonOf(line)) : undefined;
      if (parsed?.success) first.resolve(parsed.data.url);
    });
    const late = setTimeout(() => first.reject(new Error(`it isn't ready after ${READY_MS / 1000} s`)), READY_MS);
    const abort = () => first.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    void ended.then((how) => first.reject(new Error(how)));
    try {
      const url = await first.promise;
      return new EnvProcess(child, watcher, ended, url, Math.round(performance.now() - started));
    } catch (thrown) {
      await stop(child, watcher, ended);
      signal.throwIfAborted();
      const last = said.all.slice(-SHOWN).map((line) => line.replace(/^agentenv: /, "").replaceAll(folder, source));
      throw new SetupError([`${id} didn't start: ${(thrown as Error).message}`, ...last].join("\n").trimEnd(), {
        hint: `agentenv up ${shellWord(source)} shows more`,
        cause: thrown,
      });
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", abort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stop(this.child, this.watcher, this.ended);
  }
}

async function stop(child: ChildProcess, watcher: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended;
  clearTimeout(late);
  killGroup(child);
  const gone = endOf(watcher);
  killGroup(watcher);
  await gone;
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
