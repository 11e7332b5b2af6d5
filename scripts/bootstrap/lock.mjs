import { spawnSync } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { ownFolder } from "./places.mjs";
import { Problem } from "./problem.mjs";
import { say } from "./progress.mjs";

/**
 * Takes the clone's lock, waiting for another set-up to end, and returns the descriptor that holds it. The kernel lets go of
 * it when the last process that has the descriptor open ends, so a set-up that was killed leaves no stale lock, and one whose
 * `npm ci` still runs keeps it.
 */
export async function takeLock() {
  mkdirSync(ownFolder, { recursive: true });
  const descriptor = openSync(join(ownFolder, "lock"), "a");
  const { status, error } = spawnSync("flock", ["--nonblock", "3"], {
    stdio: ["ignore", "ignore", "ignore", descriptor],
  });
  if (error) throw new Problem(`flock can't be run: ${error.message}`, { advice: "Install util-linux." });
  if (status !== 0) {
    say("Another set-up is running in this clone: waiting for it.");
    await run("flock", ["3"], { lock: descriptor });
  }
  return descriptor;
}
