/** A server that has a desktop and nothing else: it prints one line of JSON when it is up, and stops when it is told. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Computer } from "./computer-start.js";

export interface Up {
  /** The server's pid as the machine sees it. */
  pid: number;
  uid: number;
  isolation: string;
  node: string;
  program: string;
  display: string;
  runtimeDir: string;
  /** The pids of the desktop's services, inside the namespace. */
  services: Record<string, number | undefined>;
  environment: NodeJS.ProcessEnv;
  secret: string | undefined;
  /** From the server's first line to the desktop being up. */
  startMs: number;
}

const start = new URL("computer-start.ts", import.meta.url).href;
const { built } = (await import(start)) as typeof import("./computer-start.js");
const { serverSide } = (await import(built("server-side.js"))) as typeof import("../../src/desktop/server-side.js");
const side = await serverSide();
const begun = performance.now();
const { Desktop } = (await import(built("desktop.js"))) as typeof import("../../src/desktop/desktop.js");
const { pino } = createRequire(built("desktop.js"))("pino") as typeof import("pino");

const computer = side.payload as Computer;
process.on("uncaughtException", (thrown: Error & { hint?: string }) => {
  console.error(`${thrown.message}\n${thrown.hint ?? ""}`);
  process.exit(1);
});
const desktop = await Desktop.start({
  display: {
    width: computer.width ?? 800,
    height: computer.height ?? 600,
    ...(computer.display === undefined ? {} : { name: computer.display }),
  },
  runtimeDir: side.runtimeDir,
  dataDir: side.runtimeDir,
  guard: side.guard,
  log: pino({ level: process.env.LOG_LEVEL ?? "silent" }, pino.destination(2)),
});
desktop.startApps(computer.apps ?? []);
const { user } = desktop.session;
for (const line of computer.launches ?? []) {
  user.spawn("/bin/sh", ["-c", line], { stdio: "ignore", detached: true });
}
const up: Up = {
  pid: side.hostPid,
  uid: user.uid,
  isolation: side.isolation,
  node: process.execPath,
  program: fileURLToPath(import.meta.url),
  display: desktop.session.display,
  runtimeDir: side.runtimeDir,
  services: Object.fromEntries(desktop.services.map(({ name, pid }) => [name, pid])),
  environment: process.env,
  secret: computer.secret,
  startMs: performance.now() - begun,
};
side.ready();
console.log(JSON.stringify(up));

const alive = setInterval(() => {}, 1 << 30);
side.stopping.addEventListener("abort", async () => {
  if (computer.stubborn) return;
  await desktop.close();
  clearInterval(alive);
  process.exit(0);
});
