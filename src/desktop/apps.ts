import { type ChildProcess, spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { SessionUser } from "../computer/session.js";
import { SetupError } from "../errors.js";
import { LastLines } from "./last-lines.js";
import { endOf, killGroup, signalGroup } from "./process-group.js";
import { SESSION_PATH } from "./programs.js";

/** What an app can't go on without: its windows are on the one, its accessibility tree is on the other. */
export type AppNeed = "display" | "bus";

/** The apps that an env starts with: started once, and once more each time that the display or the bus died and came back. */
export class Apps {
  readonly #user: SessionUser;
  readonly #log: Logger;
  readonly #running = new Set<ChildProcess>();
  #commands: readonly string[] = [];
  readonly #lost = new Set<AppNeed>();
  #stopped = false;

  constructor(user: SessionUser, log: Logger) {
    this.#user = user;
    this.#log = log;
  }

  start(commands: readonly string[]): void {
    for (const command of commands) requireApp(command);
    this.#commands = [...this.#commands, ...commands];
    if (this.#lost.size > 0) return;
    for (const command of commands) this.#run(command);
  }

  /** Ends them: one that outlived the bus would be there to be seen and have no accessibility tree any more. */
  wentAway(need: AppNeed): void {
    this.#lost.add(need);
    for (const child of this.#running) killGroup(child);
  }

  isBack(need: AppNeed): void {
    if (!this.#lost.delete(need) || this.#lost.size > 0) return;
    for (const command of this.#commands) this.#run(command);
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    const children = [...this.#running];
    for (const child of children) signalGroup(child, "SIGTERM");
    const allEnded = Promise.all(children.map((child) => endOf(child)));
    await Promise.race([allEnded, sleep(graceMs, undefined, { ref: false })]);
    for (const child of children) killGroup(child);
  }

  #run(command: string): void {
    if (this.#stopped) return;
    const log = this.#log.child({ app: command });
    const child = this.#user.spawn("/bin/sh", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    this.#running.add(child);
    const lines = new LastLines();
    lines.follow(child, (line) => log.debug(line));
    log.debug({ pid: child.pid }, "started");
    void endOf(child).then((how) => {
      this.#running.delete(child);
      const isOurs = this.#stopped || this.#lost.size > 0;
      if (isOurs || child.exitCode === 0) log.debug({ how }, "ended");
      else log.warn({ how, lastLines: lines.all.slice(-5) }, "an app that the env starts has failed");
    });
  }
}

/** Only a command line that begins with a plain word can be looked up; the rest is the shell's. */
function requireApp(command: string): void {
  const program = /^\s*([\w./+-]+)(?:\s|$)/.exec(command)?.[1];
  if (program === undefined) return;
  const lookUp = ["-c", 'command -v "$1"', "sh", program];
  if (spawnSync("/bin/sh", lookUp, { stdio: "ignore", env: { PATH: SESSION_PATH } }).status === 0) return;
  throw new SetupError(`the app ${program} that the env starts is not installed`, {
    hint: `install it (often apt-get install -y ${program}), or take it out of [apps] start`,
  });
}
