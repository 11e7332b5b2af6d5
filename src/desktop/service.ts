import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { RunningService, ServiceSpec, SessionUser } from "../computer/session.js";
import { messageOf, SetupError } from "../errors.js";
import { LastLines } from "./last-lines.js";
import { endOf, killGroup, signalGroup } from "./process-group.js";

const READY_MS = 10_000;
/** Deaths before an answer, one after the other, until a service counts as failed. It is tried again all the same. */
const FAILED_AFTER = 5;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5000;
/** What it has not answered by then is said, long before it counts as failed. */
const SLOW_MS = 4_000;
/** How long what asked whether it answers has to end, once that isn't wanted any more. */
const ASKING_MS = 250;
/** How many of its last lines are said when it dies. */
const SAID_LINES = 5;
/**
 * A service that had answered restarts at once, but not in a circle: one that lives for less than this, so many times
 * within the time below, waits.
 */
const BRIEF_MS = 100;
const AT_ONCE_DEATHS = 5;
const AT_ONCE_WITHIN_MS = 10_000;

export interface ServiceOptions {
  readonly user: SessionUser;
  readonly log: Logger;
  /** It is started once these are up, and anew when one of them went away. */
  readonly needs?: readonly Service[];
  /** Each line that it writes, from stdout and stderr. */
  onLine?(line: string): void;
  /** Each time that it answers. */
  onUp?(): void;
  /** Each time that it died, unless it was stopped. */
  onAway?(): void;
}

/** A long-running program of the computer, in a process group of its own, started again whenever it dies. */
export class Service implements RunningService {
  readonly name: string;
  readonly #spec: ServiceSpec;
  readonly #options: ServiceOptions;
  readonly #log: Logger;
  readonly #lines = new LastLines();
  readonly #dependents = new Set<Service>();
  readonly #ending = new AbortController();
  #waiting: { up: PromiseWithResolvers<void>; failed: PromiseWithResolvers<never> } = waiting();
  #state: RunningService["state"] = "starting";
  #child: ChildProcess | undefined;
  #life: Promise<void> | undefined;
  #unanswered = 0;
  #restarting = false;
  #deaths: number[] = [];

  constructor(spec: ServiceSpec, options: ServiceOptions) {
    this.name = spec.name;
    this.#spec = spec;
    this.#options = options;
    this.#log = options.log.child({ service: spec.name });
    for (const need of options.needs ?? []) need.#dependents.add(this);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get state(): RunningService["state"] {
    return this.#state;
  }

  get lastLines(): readonly string[] {
    return this.#lines.all;
  }

  /**
   * Resolves once it answers; a service that does not come up is a SetupError with the last lines that it wrote. Who gives up
   * waiting, by `signal`, has to stop it.
   */
  async start(signal?: AbortSignal): Promise<void> {
    this.#life ??= this.#live();
    const settled = Promise.race([this.#waiting.up.promise, this.#waiting.failed.promise]);
    await (signal === undefined ? settled : unlessAborted(settled, signal));
  }

  /** Resolves when it is up; rejects when `signal` is aborted. */
  async #whenUp(signal: AbortSignal): Promise<void> {
    if (this.#state !== "up") await unlessAborted(this.#waiting.up.promise, signal);
  }

  restart(reason: string): void {
    if (this.#child === undefined || this.#ending.signal.aborted) return;
    this.#log.warn({ reason }, "restarting");
    this.#restarting = true;
    killGroup(this.#child);
  }

  /** SIGTERM to its process group, and SIGKILL to what is left of it after `graceMs`. Idempotent. */
  async stop(graceMs: number): Promise<void> {
    for (const need of this.#options.needs ?? []) need.#dependents.delete(this);
    this.#ending.abort();
    const child = this.#child;
    if (child !== undefined) {
      signalGroup(child, "SIGTERM");
      await Promise.race([endOf(child), sleep(graceMs, undefined, { ref: false })]);
      killGroup(child);
    }
    // One that the kernel keeps from dying is the guardian's.
    await Promise.race([this.#life, sleep(graceMs, undefined, { ref: false })]);
    this.#become("stopped");
  }

  async #live(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        await Promise.all((this.#options.needs ?? []).map((need) => need.#whenUp(signal)));
        signal.throwIfAborted();
        const started = performance.now();
        const answered = await this.#liveOnce();
        const delay = this.#delayAfter(answered, performance.now() - started);
        if (!signal.aborted) await sleep(delay, undefined, { signal });
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
      }
    }
  }

  /** From one start to the death that follows; whether it had answered in between. */
  async #liveOnce(): Promise<boolean> {
    this.#removePaths();
    const [file, ...args] = this.#spec.command;
    const child = this.#options.user.spawn(file, args, {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      ...(this.#spec.cwd === undefined ? {} : { cwd: this.#spec.cwd }),
      ...(this.#spec.environment === undefined ? {} : { env: this.#spec.environment }),
    });
    this.#child = child;
    this.#restarting = false;
    this.#become(this.#state === "failed" ? "failed" : "starting");
    const ended = endOf(child);
    this.#lines.follow(child, (line) => {
      this.#log.debug(line);
      this.#options.onLine?.(line);
    });

    const answered = await this.#answers(child, ended);
    if (answered) {
      this.#unanswered = 0;
      this.#become("up");
      this.#options.onUp?.();
    }
    const how = await ended;
    // What the leader left behind in its group would hold its socket, display or bus.
    killGroup(child);
    this.#child = undefined;
    this.#removePaths();
    if (!this.#ending.signal.aborted) {
      this.#log.warn({ how, answered, lines: this.#lastSaid }, "died");
      if (this.#state !== "failed") this.#become("away");
      this.#options.onAway?.();
      for (const dependent of this.#dependents) dependent.restart(`${this.name} went away`);
    }
    return answered;
  }

  async #answers(child: ChildProcess, ended: Promise<string>): Promise<boolean> {
    if (child.pid === undefined) {
      this.#unanswered = FAILED_AFTER;
      this.#failed(await ended);
      return false;
    }
    const over = new AbortController();
    const readyMs = this.#spec.readyMs ?? READY_MS;
    const slow = setTimeout(() => this.#log.warn({ lines: this.#lastSaid }, "does not answer yet"), SLOW_MS);
    const late = setTimeout(() => {
      this.#unanswered = FAILED_AFTER;
      over.abort(new Error(`it did not answer within ${readyMs} ms`));
    }, readyMs);
    let asking: Promise<void> | undefined;
    try {
      const died = ended.then((how) => {
        over.abort(new Error(how));
        throw new Error(how);
      });
      const tooLate = new Promise<never>((_, reject) => {
        over.signal.addEventListener("abort", () => reject(over.signal.reason), { once: true });
      });
      asking = this.#spec.ready?.(over.signal);
      await Promise.race([asking, died, tooLate]);
      return !hasExited(child);
    } catch (thrown) {
      killGroup(child);
      this.#failed(messageOf(thrown));
      return false;
    } finally {
      clearTimeout(slow);
      clearTimeout(late);
      over.abort();
      // What asks may be programs of its own, which the signal ends.
      await Promise.race([asking?.catch(() => {}), sleep(ASKING_MS, undefined, { ref: false })]);
    }
  }

  #failed(why: string): void {
    this.#unanswered += this.#restarting ? 0 : 1;
    if (this.#unanswered < FAILED_AFTER) return;
    if (this.#state !== "failed") this.#log.error({ why, lines: this.#lastSaid }, "does not start");
    this.#become("failed");
    const lines = this.#lastSaid.join("\n");
    this.#waiting.failed.reject(
      new SetupError(`${this.name} does not start: ${why}`, lines === "" ? {} : { hint: `its last lines:\n${lines}` }),
    );
  }

  get #lastSaid(): readonly string[] {
    return this.#lines.all.slice(-SAID_LINES);
  }

  #delayAfter(answered: boolean, livedMs: number): number {
    if (this.#restarting || (answered && livedMs >= BRIEF_MS)) return 0;
    if (!answered) return Math.min(FIRST_DELAY_MS * 2 ** Math.max(this.#unanswered - 1, 0), MAX_DELAY_MS);
    const now = Date.now();
    this.#deaths = [...this.#deaths.filter((at) => now - at < AT_ONCE_WITHIN_MS), now];
    return this.#deaths.length <= AT_ONCE_DEATHS ? 0 : 1000;
  }

  #become(state: RunningService["state"]): void {
    if (this.#state === state) return;
    if (this.#state === "up") this.#waiting = waiting();
    this.#state = state;
    if (state === "up") this.#waiting.up.resolve();
  }

  #removePaths(): void {
    for (const path of this.#spec.removes ?? []) rmSync(path, { recursive: true, force: true });
  }
}

/** Rejects with the signal's reason when it is aborted first. */
async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function waiting() {
  const made = { up: Promise.withResolvers<void>(), failed: Promise.withResolvers<never>() };
  // Nobody may be waiting.
  made.failed.promise.catch(() => {});
  return made;
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
