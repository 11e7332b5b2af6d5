/** The server's process: what `agentenv up` starts as the session user, behind its guardian. */
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { readDataFiles } from "../bundles/data-files.js";
import { loadClass } from "../bundles/load-class.js";
import { notStarted } from "../bundles/not-loaded.js";
import { ComputerDriver } from "../computer/driver.js";
import { Desktop } from "../desktop/desktop.js";
import { type ServerSide, serverSide } from "../desktop/server-side.js";
import { Application } from "../environment/application.js";
import { Environment } from "../environment/environment.js";
import { SetupError } from "../errors.js";
import { listen } from "../http/listen.js";
import { buildHttp } from "../http/server.js";
import { Tokens } from "../http/tokens.js";
import { McpEndpoint } from "../mcp/endpoint.js";
import { packageRoot } from "../package-root.js";
import { skillFromAnswer } from "../skills/answer.js";
import { showReady } from "./banner.js";
import { reportFailure } from "./failure.js";
import { createLog } from "./log.js";
import type { StartPlan } from "./start-plan.js";

/** How long an environment may take to become ready before its start is given up. */
const READY_MS = 60_000;

const side = await serverSide();
const plan = side.payload as StartPlan;
const log = openLog();
/** What has to be closed, newest last. */
const open: (() => Promise<unknown>)[] = [];
side.stopping.addEventListener("abort", () => void stop(0), { once: true });

function openLog(): Logger {
  try {
    return createLog(plan.log);
  } catch (thrown) {
    reportFailure(thrown);
    process.exit(1);
  }
}

let stopped = false;
async function stop(code: number): Promise<void> {
  if (stopped) return;
  stopped = true;
  for (const close of open.reverse()) {
    await close().catch((thrown: unknown) => log.error({ err: thrown }, "stopping was not clean"));
  }
  process.exit(code);
}

try {
  await start(side, plan, log);
} catch (thrown) {
  if (!side.stopping.aborted) reportFailure(plan.file.type === "class" ? notStarted(thrown, plan) : thrown);
  await stop(1);
}

async function start(side: ServerSide, plan: StartPlan, log: Logger): Promise<void> {
  const isComputer = plan.file.type === "computer";
  const loading = isComputer ? loadClass(packageRoot, plan.module) : loadClass(plan.folder, plan.module, plan.source);
  // A class that can't be loaded is said after a desktop that can't be started, not as an unhandled rejection.
  loading.catch(() => {});
  const desktop = isComputer ? await startDesktop(side, plan, log) : undefined;
  const environment = await makeEnvironment(await loading, desktop, plan, log);
  // An author's own may throw at once.
  open.push(async () => environment.close());

  const application = await Application.build(environment, log, plan.file.tools);
  const { idle_s, max } = plan.file.session ?? {};
  const mcp = new McpEndpoint(application, {
    ...(idle_s === undefined ? {} : { idleMs: idle_s * 1000 }),
    ...(max === undefined ? {} : { maxSessions: max }),
    skills: plan.skills.map((skill) => skillFromAnswer(skill, `[skills] of ${plan.folder}`)),
  });
  const app: FastifyInstance = buildHttp(application, mcp, {
    log,
    allowedHosts: plan.allowedHosts,
    finished: true,
    ...(plan.tokens === undefined ? {} : { tokens: Tokens.fromJSON(plan.tokens) }),
  });
  open.push(() => app.close());
  open.push(() => mcp.close());
  const port = await listen(app, plan.host, plan.port);

  const data = readDataFiles(plan.folder, plan.file.data?.files ?? {});
  if (data.length > 0) await application.data["data/add"]?.(data);
  if (environment instanceof ComputerDriver && desktop !== undefined) {
    const starting = desktop.addServices(environment.services());
    // On a desktop that is closed meanwhile both fail, and the other one is waited for first.
    starting.catch(() => {});
    environment.started((name) => desktop.service(name));
    await starting;
    desktop.startApps(plan.file.apps?.start ?? []);
  }
  await untilReady(environment, side.stopping, log);
  if (side.stopping.aborted) return;
  side.ready();
  showReady({ side, plan, port, environment, application, desktop });
}

async function startDesktop(side: ServerSide, plan: StartPlan, log: Logger): Promise<Desktop> {
  const { width = 1280, height = 800 } = plan.file.display ?? {};
  const starting = Desktop.start({
    display: { width, height, ...(plan.display === undefined ? {} : { name: plan.display }) },
    runtimeDir: side.runtimeDir,
    dataDir: plan.dataDir,
    guard: side.guard,
    signal: side.stopping,
    log,
  });
  // One that is given up is waited for, too: it takes away what it has started.
  open.push(async () => (await starting.catch(() => undefined))?.close());
  return await starting;
}

async function makeEnvironment(
  found: new (...args: never[]) => object,
  desktop: Desktop | undefined,
  plan: StartPlan,
  log: Logger,
): Promise<Environment> {
  if (!(found.prototype instanceof Environment)) {
    throw new SetupError(`${plan.module} doesn't extend this agent-env's Environment`, {
      hint: "start it with the agentenv that its folder has installed: npx agentenv up . in that folder",
    });
  }
  const Class = found as unknown as new (options?: object) => Environment;
  if (desktop === undefined) return new Class();
  const apps = plan.file.apps?.start ?? [];
  const driver = new Class({ session: desktop.session, settings: plan.settings, apps, log });
  if (driver instanceof ComputerDriver) await driver.prepare();
  return driver;
}

async function untilReady(environment: Environment, stopping: AbortSignal, log: Logger): Promise<void> {
  const deadline = performance.now() + READY_MS;
  for (let wait = 10; !stopping.aborted; wait = Math.min(wait * 2, 500)) {
    const { ready, reasons } = await environment.readiness();
    if (ready) return;
    if (performance.now() > deadline) {
      throw new SetupError(`it isn't ready after ${READY_MS / 1000} s: ${reasons.join("; ")}`, {
        hint: "the log above says what was tried",
      });
    }
    log.debug({ reasons }, "not ready yet");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
