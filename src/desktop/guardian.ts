/**
 * The process that outlives the server: it starts the server, passes stop signals on to it, and when the server is gone,
 * whatever way, it kills all that is left of the computer, removes its sockets, and ends with the server's status. It
 * imports next to nothing, as every start waits for it.
 */
import { spawn } from "node:child_process";
import { closeSync, ftruncateSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { GUARDIAN_PROC_FD, type Handoff, lockOf, type ToGuardian, type ToServer } from "./handoff.js";
import { keepNamed, killRemains, removeRemains } from "./remains.js";

/** How long a server may take to stop. Together with the killing it stays below the two seconds that are promised. */
const STOP_MS = 1500;
const DRAIN_MS = 100;

const subreaper = process.ppid;
const handoff = readHandoff();
const { forServer } = handoff;
const paths = new Set<string>();
/** Once the pipe is closed, all that the server said has arrived. */
const disconnected = Promise.withResolvers<void>();
let requested: "SIGTERM" | "SIGINT" | "SIGHUP" | "SIGQUIT" | undefined;
let ready = false;

// What another computer left here, when not even its guardian could clean up.
await removeRemains(forServer.runtimeDir, []);

const server = spawn(process.execPath, handoff.server, {
  cwd: handoff.home,
  env: handoff.environment,
  // A session of its own, so that a terminal's Ctrl-C comes here alone and reaches it once.
  detached: true,
  stdio: ["ignore", "inherit", "inherit", "ipc", GUARDIAN_PROC_FD],
});
closeSync(GUARDIAN_PROC_FD);
server.once("error", (error) => {
  report(`the server could not be started: ${error.message}`);
  void end(1, null);
});
server.once("exit", (code, signal) => {
  if (signal !== null && requested === undefined) report(`the server was ended by ${signal}`);
  void end(code, signal);
});
server.on("message", (message: ToGuardian) => {
  if (message.type === "ready") {
    ready = true;
    return;
  }
  paths.add(message.path);
  keepNamed(forServer.runtimeDir, message.path);
});
server.once("disconnect", disconnected.resolve);
server.send({ type: "handoff", handoff: forServer } satisfies ToServer, () => {
  // A server that is gone already is told by its exit.
});

// A terminal that was closed can't be written to any more, and that must not end the guardian.
process.stderr.on("error", () => {});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const) process.on(signal, stop);
// Stopped by a terminal's Ctrl-Z, nobody would pass on the Ctrl-C that follows.
for (const signal of ["SIGTSTP", "SIGUSR1", "SIGUSR2"] as const) process.on(signal, () => {});

function readHandoff(): Handoff {
  const text = readFileSync(0, "utf8");
  ftruncateSync(0, 0);
  return JSON.parse(text) as Handoff;
}

/** A second signal changes nothing: npm passes on what the terminal sent to everybody anyway. */
function stop(signal: NonNullable<typeof requested>): void {
  if (requested !== undefined) return;
  requested = signal;
  server.kill("SIGTERM");
  setTimeout(() => {
    report(`the server did not stop within ${STOP_MS} ms and was killed`);
    server.kill("SIGKILL");
  }, STOP_MS).unref();
}

/**
 * A stop that was asked for is a success once the computer was there to be used. Before, whoever waits for it has to be told
 * that it never was, as a shell tells what a signal ended.
 */
function statusOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (requested !== undefined && !ready) return 128 + constants.signals[requested];
  if (signal === null) return code ?? 1;
  return requested !== undefined && signal === "SIGTERM" ? 0 : 128 + constants.signals[signal];
}

async function end(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
  await killRemains(forServer, subreaper);
  await Promise.race([disconnected.promise, new Promise((resolve) => setTimeout(resolve, DRAIN_MS))]);
  await removeRemains(forServer.runtimeDir, paths);
  // Where there is a namespace, what is around it does that.
  if (forServer.isolation === "none") removeFolder(forServer.runtimeDir);
  process.exit(statusOf(code, signal));
}

/** The next start does it where root's folder is around it. */
function removeFolder(runtimeDir: string): void {
  try {
    rmdirSync(runtimeDir);
    rmSync(lockOf(runtimeDir));
  } catch {
    // Not ours to change, or not empty.
  }
}

function report(text: string): void {
  process.stderr.write(`agentenv: ${text}\n`);
}
