import { messageOf } from "../errors.js";
import { ROLE_HEADER, ROLE_META, SESSION_META } from "../protocol/tool.js";

/** Why a caller ended, in the words of a refusal. */
export const CALLER_ENDS = {
  caller: "the caller ended it",
  idle: "it was idle for too long",
  stopping: "the server is stopping",
} as const;
/** Why a caller ended. */
export type CallerEnd = keyof typeof CALLER_ENDS;

/**
 * Who is calling. One object per caller for as long as the caller lives, so whatever is kept per caller can hang on it in
 * a WeakMap; what has to be let go when the caller ends is registered with `onEnd`.
 */
export class Caller {
  readonly #releases = new Set<() => void | Promise<void>>();
  #ended: Promise<void> | undefined;
  #end: CallerEnd | undefined;

  constructor(
    /** What tells this caller from others: the session that a gateway stamped, else the MCP session. */
    readonly session: string | undefined,
  ) {}

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Why it ended; undefined while it lives. */
  get endedBy(): CallerEnd | undefined {
    return this.#end;
  }

  /**
   * Runs `release` once, when the caller's MCP session ends, whatever ends it. Returns a function that takes it back. On a
   * caller that has ended already it runs at once.
   */
  onEnd(release: () => void | Promise<void>): () => void {
    if (this.#ended) {
      void settle(release);
      return () => {};
    }
    this.#releases.add(release);
    return () => this.#releases.delete(release);
  }

  /** Lets go of everything that hangs on this caller. Idempotent; one release that throws doesn't keep the others. */
  end(why: CallerEnd = "caller"): Promise<void> {
    this.#end ??= why;
    this.#ended ??= (async () => {
      const releases = [...this.#releases];
      this.#releases.clear();
      await Promise.all(releases.map(settle));
    })();
    return this.#ended;
  }
}

async function settle(release: () => void | Promise<void>): Promise<void> {
  try {
    await release();
  } catch (thrown) {
    process.emitWarning(`letting go of an ended caller failed: ${messageOf(thrown)}`);
  }
}

/** The role and session of one request, before they are looked up. */
export interface CallerClaim {
  role: string | undefined;
  session: string | undefined;
}

type Headers = { readonly [name: string]: string | string[] | undefined };

/**
 * Reads who a request claims to come from. Where a gateway stamped a role, whatever its value, the headers are the
 * gateway's own and are not read.
 */
export function claimOf(meta: unknown, headers: Headers, mcpSession: string | undefined): CallerClaim {
  const stamped = typeof meta === "object" && meta !== null ? (meta as Record<string, unknown>) : {};
  const forwarded = ROLE_META in stamped;
  const role = forwarded ? stamped[ROLE_META] : headers[ROLE_HEADER];
  const session = stamped[SESSION_META];
  return {
    role: normalizeRole(role),
    session: typeof session === "string" && session !== "" ? session : mcpSession,
  };
}

/** Blank and `default` mean no role. */
export function normalizeRole(role: unknown): string | undefined {
  if (typeof role !== "string") return undefined;
  const trimmed = role.trim();
  return trimmed === "" || trimmed === "default" ? undefined : trimmed;
}
