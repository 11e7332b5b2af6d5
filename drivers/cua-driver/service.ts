import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceSpec } from "../../src/computer/session.js";
import { AgentEnvError, SetupError } from "../../src/errors.js";
import type { DaemonClient, DaemonMetadata } from "./daemon-client.js";
import { QUIET_ENVIRONMENT } from "./executable.js";
import type { Pin } from "./pin-schema.js";

const POLL_MS = 10;

/** The daemon's name among the computer's services. */
export const DAEMON = "cua-driver";

/**
 * A capture takes several buffers of megabytes. Left alone, glibc maps each of them anew and unmaps it, and the kernel fills
 * in a thousand pages: half of what a capture takes. Kept at hand they take no more memory, as long as there are few arenas.
 * Measured of 0.37.0 at 1280x800: 11.2 ms a capture without, 5.9 ms with; 77 and 70 MB after 16 callers at once.
 */
const MEMORY = {
  MALLOC_MMAP_THRESHOLD_: String(32 << 20),
  MALLOC_TRIM_THRESHOLD_: String(64 << 20),
  MALLOC_ARENA_MAX: "2",
} as const;

/** The daemon's socket in the computer's runtime folder. */
export function socketPath(runtimeDir: string): string {
  return join(runtimeDir, "cua-driver.sock");
}

export interface DaemonServiceOptions {
  readonly executable: string;
  readonly runtimeDir: string;
  readonly pin: Pin;
  /** A client of the daemon's socket: asked for `metadata` after each start, so it knows the daemon's pid. */
  readonly client: DaemonClient;
  /** Clears up on the display what a daemon that died left there. */
  readonly afterDeath?: () => Promise<void>;
}

/**
 * `cua-driver serve` as a service of the computer: no approvals asked, nothing drawn over the desktop, nothing sent
 * outside. Up once it answers with the pinned version; another version is a SetupError.
 */
export function daemonService(options: DaemonServiceOptions): ServiceSpec {
  const { executable, runtimeDir, pin, client, afterDeath } = options;
  const socket = socketPath(runtimeDir);
  const pidFile = join(runtimeDir, "cua-driver.pid");
  let lives = 0;
  return {
    name: DAEMON,
    command: [
      executable,
      ...["serve", "--socket", socket, "--pid-file", pidFile, "--dangerously-bypass-approvals", "--no-overlay"],
    ],
    environment: { ...QUIET_ENVIRONMENT, ...MEMORY },
    removes: [socket, pidFile],
    async ready(signal) {
      lives += 1;
      const [metadata] = await Promise.all([answered(client, signal), lives > 1 ? afterDeath?.() : undefined]);
      checkVersion(metadata, pin);
    },
  };
}

/** Asks until the daemon answers. */
async function answered(client: DaemonClient, signal: AbortSignal): Promise<DaemonMetadata> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await client.metadata({ signal });
    } catch (thrown) {
      if (!(thrown instanceof AgentEnvError && AWAY.has(thrown.code))) throw thrown;
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

/** Not there yet, or gone again. */
const AWAY: ReadonlySet<string> = new Set(["device_unavailable", "delivery_failed"]);

/** A SetupError where the daemon that answers isn't of the pinned version. */
export function checkVersion(metadata: DaemonMetadata, pin: Pin): void {
  const { driver_version: version, contract_version: contract } = metadata;
  if (version === pin.driver.version && contract === pin.driver.contractVersion) return;
  throw new SetupError(
    `the daemon is cua-driver ${version} (contract ${contract}); pinned is ${pin.driver.version} (${pin.driver.contractVersion})`,
    { hint: "Install the pinned version: agentenv driver install cua-driver" },
  );
}
