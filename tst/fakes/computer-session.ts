import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ComputerSession } from "../../src/computer/session.js";

/** A session without a display, whose user is whoever runs the tests under another uid, in a home of its own. */
export interface FakeSession extends ComputerSession, Disposable {}

export function fakeSession(uid = 12_345): FakeSession {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "agentenv-home-")));
  const environment = () => ({ HOME: home, USER: "someone", PATH: process.env.PATH ?? "", LANG: "C.UTF-8" });
  return {
    display: ":4242",
    runtimeDir: home,
    dataDir: home,
    user: {
      name: "someone",
      uid,
      gid: uid,
      home,
      environment,
      spawn: (file, args, options = {}) =>
        spawn(file, [...args], { cwd: home, ...options, env: { ...environment(), ...options.env } }),
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** A log that keeps its lines. */
export class FakeLog {
  readonly lines: { level: string; details: object; message: string }[] = [];
  debug = (details: object, message: string) => void this.lines.push({ level: "debug", details, message });
  info = (details: object, message: string) => void this.lines.push({ level: "info", details, message });
  warn = (details: object, message: string) => void this.lines.push({ level: "warn", details, message });
  error = (details: object, message: string) => void this.lines.push({ level: "error", details, message });
}
