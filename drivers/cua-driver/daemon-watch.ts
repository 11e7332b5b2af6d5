import { setTimeout as sleep } from "node:timers/promises";
import type { ComputerLog } from "../../src/computer/log.js";
import type { RunningService } from "../../src/computer/session.js";
import { AgentEnvError, type ErrorCode, messageOf } from "../../src/errors.js";
import type { DaemonClient } from "./daemon-client.js";

/** A daemon that died is noticed within this time, and then isn't the watch's to restart. */
const DEATH_MS = 100;

/**
 * Restarts a daemon that lives and is of no use: one that hangs, or whose socket is gone. A call that failed may only be
 * slow or unlucky, so the daemon is asked for its `metadata`, which it answers whatever else it does: no answer, and it is
 * restarted with its whole process group.
 */
export class DaemonWatch {
  #service: RunningService | undefined;
  #look: Promise<void> | undefined;

  constructor(
    private readonly client: DaemonClient,
    private readonly log: ComputerLog,
  ) {}

  /** The service that the daemon runs as, once it is started. */
  watch(service: RunningService): void {
    this.#service = service;
  }

  get service(): RunningService | undefined {
    return this.#service;
  }

  /** Says that a call missed its deadline. Resolves when it is known whether the daemon hangs; one look at a time. */
  missed(what: string): Promise<void> {
    return this.#looking(() => this.#restartUnlessAnswers(`${what} missed its deadline`, "timeout"));
  }

  /** Says that a call couldn't be sent. Resolves when it is known whether a daemon that lives can't be reached. */
  async unreachable(what: string): Promise<void> {
    if (this.#service?.state !== "up") return;
    await this.#looking(async () => {
      const before = this.#service?.pid;
      await sleep(DEATH_MS, undefined, { ref: false });
      if (this.#service?.pid !== before) return;
      await this.#restartUnlessAnswers(`${what} could not be sent`, "device_unavailable");
    });
  }

  #looking(look: () => Promise<void>): Promise<void> {
    this.#look ??= look().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  /** `failure` is how `metadata` fails where the daemon is of no use. */
  async #restartUnlessAnswers(reason: string, failure: ErrorCode): Promise<void> {
    const service = this.#service;
    const pid = service?.pid;
    // One that comes up has a time of its own.
    if (service?.state !== "up" || pid === undefined) return;
    try {
      await this.client.metadata();
      this.log.info({ reason }, "cua-driver answers: it isn't restarted");
    } catch (thrown) {
      // Another life than the one that was asked has answered for itself; one that is gone is the supervisor's.
      const useless = thrown instanceof AgentEnvError && thrown.code === failure;
      if (!useless || service.state !== "up" || service.pid !== pid) return;
      service.restart(`${reason}, and then metadata failed too: ${messageOf(thrown)}`);
    }
  }
}
