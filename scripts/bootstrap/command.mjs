import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { logFile, root } from "./places.mjs";
import { Problem, Stopped } from "./problem.mjs";

const TAIL_LINES = 15;
/** How long a program gets to end after a signal was passed on to it; dpkg needs to finish the package it is at. */
const GRACE_MS = 30_000;
/** How long output may still arrive after a program's end. */
const DRAIN_MS = 500;

const running = new Set();
let stopping;

/**
 * Runs a program to its end, in a process group of its own, its output in the log; throws a `Problem` with its last lines
 * when it fails. `lock` is a descriptor that the program keeps open as long as it lives, so that a lock outlives a bootstrap
 * that was killed. `onLine` gets each line of output, `onStatus` each line that the program writes to descriptor 4.
 */
export async function run(file, args, { advice, cwd = root, env = process.env, lock, onLine, onStatus, show } = {}) {
  if (stopping) throw new Stopped(stopping);
  const line = [file, ...args].join(" ");
  appendFileSync(logFile, `\n$ ${line}\n`);
  const child = spawn(file, args, {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", show ? "inherit" : "pipe", lock ?? "ignore", onStatus ? "pipe" : "ignore"],
  });
  running.add(child);
  const output = [];
  const keep = (text) => {
    output.push(text);
    onLine?.(text);
    if (output.length > 200) output.shift();
  };
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) readLines(stream, keep, (chunk) => appendFileSync(logFile, chunk));
  }
  if (onStatus) readLines(child.stdio[4], onStatus);

  const outcome = await new Promise((settle) => {
    child.once("error", (error) => settle({ error }));
    child.once("close", (code, signal) => settle({ code, signal }));
    // A service that a package started may keep our pipes open: the program's own end counts.
    child.once("exit", (code, signal) => setTimeout(() => settle({ code, signal }), DRAIN_MS));
  });
  running.delete(child);
  if (stopping) throw new Stopped(stopping);
  if (outcome.code === 0) return output;
  const why = outcome.error
    ? outcome.error.message
    : outcome.signal
      ? `ended by ${outcome.signal}`
      : `exit code ${outcome.code}`;
  const tail = output.filter((text) => text.trim() !== "").slice(-TAIL_LINES);
  throw new Problem(`${line}: ${why}`, { tail, advice });
}

/** Passes a signal on to whatever runs and lets the bootstrap end when that has ended; nothing new is started. */
export function endOnSignals() {
  for (const [signal, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ]) {
    process.on(signal, () => {
      stopping ??= { signal, exitCode: 128 + number };
      if (running.size === 0) process.exit(stopping.exitCode);
      for (const child of running) {
        signalGroup(child, signal);
        setTimeout(() => signalGroup(child, "SIGKILL"), GRACE_MS).unref();
      }
    });
  }
}

function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

function readLines(stream, onLine, onChunk) {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    onChunk?.(chunk);
    const lines = (rest + chunk).split(/[\r\n]+/);
    rest = lines.pop();
    for (const text of lines) onLine(text);
  });
  stream.on("end", () => {
    if (rest) onLine(rest);
  });
}
