import type { ComputerSession, RunningService } from "../../src/computer/session.js";
import { accessibilityAnswers } from "../../src/desktop/session-bus.js";
import { AgentEnvError, messageOf } from "../../src/errors.js";
import type { ReadyCheck } from "../../src/protocol/computer.js";
import type { DaemonClient, DaemonMetadata } from "./daemon-client.js";
import { verifyExecutable } from "./install.js";
import { hostArch } from "./pin.js";
import { digestTool, listedTools, toolDifferences } from "./pin-differences.js";
import type { Pin } from "./pin-schema.js";

/** How many of the daemon's last lines are shown. */
const SHOWN_LINES = 5;
/** How many differences are shown. */
const SHOWN_DIFFERENCES = 5;

export interface ReadyContext {
  readonly pin: Pin;
  readonly client: DaemonClient;
  readonly session: ComputerSession;
  /** The daemon's service, once it is started. */
  readonly service: () => RunningService | undefined;
  readonly needsAccessibility: boolean;
}

/** Whether the daemon answers now, as the pinned version, and is the one that was started here. */
export async function daemonCheck(context: ReadyContext, signal: AbortSignal): Promise<ReadyCheck> {
  const { pin, client } = context;
  const service = context.service();
  let metadata: DaemonMetadata;
  try {
    metadata = await client.metadata({ signal });
  } catch (thrown) {
    return { name: "daemon", ok: false, detail: [messageOf(thrown), ...lastWords(service)].join("\n") };
  }
  const { driver_version: version, contract_version: contract, pid } = metadata;
  const problems = [
    ...(version === pin.driver.version ? [] : [`pinned is ${pin.driver.version}`]),
    ...(contract === pin.driver.contractVersion
      ? []
      : [`its contract is ${contract}, pinned is ${pin.driver.contractVersion}`]),
    ...(service?.pid === undefined || service.pid === pid
      ? []
      : [`the one that was started here has pid ${service.pid}`]),
  ];
  return {
    name: "daemon",
    ok: problems.length === 0,
    detail: [`cua-driver ${version}, pid ${pid}`, ...problems].join("; "),
  };
}

/** What is looked at once: the binary that runs, what it lists, the bus that accessibility trees come over. */
export function startChecks(context: ReadyContext, signal: AbortSignal): Promise<ReadyCheck[]> {
  return Promise.all([
    checked("executable", () => executableCheck(context, signal)),
    checked("tools", () => toolsCheck(context, signal)),
    checked("accessibility bus", () => accessibilityCheck(context, signal)),
  ]);
}

async function executableCheck({ pin, client, service }: ReadyContext, signal: AbortSignal): Promise<ReadyCheck> {
  const name = "executable";
  const pid = service()?.pid ?? (await client.metadata({ signal })).pid;
  await verifyExecutable(`/proc/${pid}/exe`, pin, hostArch(), signal);
  return { name, ok: true, detail: `sha256 ${pin.arches[hostArch()].executable.sha256}, as pinned` };
}

async function toolsCheck({ pin, client }: ReadyContext, signal: AbortSignal): Promise<ReadyCheck> {
  const tools = listedTools(await client.list(signal)).map(digestTool);
  const differences = toolDifferences(pin.tools, tools);
  if (differences.length === 0) return { name: "tools", ok: true, detail: `${tools.length} tools, as pinned` };
  const more = differences.length - SHOWN_DIFFERENCES;
  return {
    name: "tools",
    ok: false,
    detail: [...differences.slice(0, SHOWN_DIFFERENCES), ...(more > 0 ? [`and ${more} more`] : [])].join("; "),
  };
}

/** An env that needs no accessibility trees is ready without them, and is told so. */
async function accessibilityCheck(context: ReadyContext, signal: AbortSignal): Promise<ReadyCheck> {
  const name = "accessibility bus";
  if (await accessibilityAnswers(context.session.user, signal)) return { name, ok: true, detail: "it answers" };
  const detail = "it doesn't answer, so windows have no accessibility tree; is at-spi2-core installed?";
  if (context.needsAccessibility) return { name, ok: false, detail };
  return { name, ok: true, detail: `warning: ${detail}` };
}

/** What the daemon's service says of itself, for one that doesn't answer. */
function lastWords(service: RunningService | undefined): string[] {
  if (service === undefined) return [];
  const lines = service.lastLines.slice(-SHOWN_LINES);
  return [`its service is ${service.state}`, ...(lines.length === 0 ? [] : ["its last lines:", ...lines])];
}

async function checked(name: string, check: () => Promise<ReadyCheck>): Promise<ReadyCheck> {
  try {
    return await check();
  } catch (thrown) {
    const away = thrown instanceof AgentEnvError ? `${thrown.code}: ` : "";
    return { name, ok: false, detail: `${away}${messageOf(thrown)}` };
  }
}
