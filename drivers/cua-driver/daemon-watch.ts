import type { ComputerLog } from "../../src/computer/log.js";
import type { RunningService } from "../../src/computer/session.js";
import { AgentEnvError, messageOf } from "../../src/errors.js";
import type { DaemonClient } from "./daemon-client.js";

/**
 * Restarts a daemon that hangs. A call that missed its deadline may only be slow, so the daemon is asked for its `metadata`,
 * which it answers whatever else it does: no answer, and it is restarted with its whole process group.
 */
export class DaemonWatch {
  #service: RunningService | undefined;
  #probe: Promise<void> | undefined;

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
    this.#probe ??= this.#look(what).finally(() => {
      this.#probe = undefined;
    });
    return this.#probe;
  }

  async #look(what: string): Promise<void> {
    const service = this.#service;
    const pid = service?.pid;
    // One that comes up has a time of its own.
    if (service?.state !== "up" || pid === undefined) return;
    try {
      await this.client.metadata();
      this.log.info({ call: what }, "cua-driver missed a deadline and answers: it isn't restarted");
    } catch (thrown) {
      // Another life than the one that was asked has answered for itself; one that is gone is the supervisor's.
      const hangs = thrown instanceof AgentEnvError && thrown.code === "timeout";
      if (!hangs || service.pid !== pid) return;
      const seconds = this.client.deadlines.metadata / 1000;
      service.restart(`${what} missed its deadline, and then the daemon didn't answer metadata within ${seconds} s`);
      this.log.warn({ call: what, pid }, `cua-driver hangs and is restarted: ${messageOf(thrown)}`);
    }
  }
}
