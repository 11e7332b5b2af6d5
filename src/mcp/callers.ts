import { Caller, type CallerEnd } from "../environment/caller.js";
import { AgentEnvError } from "../errors.js";

/** How many callers one gateway may bring through one MCP session. */
const MAX_CALLERS_A_SESSION = 1_024;
const MAX_NAME_LENGTH = 1_024;

/**
 * The callers that live: one for each MCP session, and one for each session that a gateway stamps on what it forwards. A
 * caller lives as long as some MCP session brings it.
 */
export class Callers {
  readonly #byKey = new Map<string, { caller: Caller; sessions: Set<string> }>();
  readonly #bySession = new Map<string, Set<string>>();

  /** The caller that `key` names, brought by the MCP session `sessionId`. */
  of(key: string, sessionId: string): Caller {
    const known = this.#byKey.get(key);
    if (known?.sessions.has(sessionId)) return known.caller;
    if (key.length > MAX_NAME_LENGTH) {
      throw new AgentEnvError("invalid_argument", `a session's name has at most ${MAX_NAME_LENGTH} characters`);
    }
    const brought = this.#bySession.get(sessionId) ?? new Set();
    if (brought.size >= MAX_CALLERS_A_SESSION) {
      throw new AgentEnvError("limit_exceeded", `one MCP session brings at most ${MAX_CALLERS_A_SESSION} callers`, {
        hint: "open another MCP session for the others",
      });
    }
    const entry = known ?? { caller: new Caller(key), sessions: new Set<string>() };
    entry.sessions.add(sessionId);
    this.#byKey.set(key, entry);
    this.#bySession.set(sessionId, brought.add(key));
    return entry.caller;
  }

  /** Ends every caller that only this MCP session brought. */
  async sessionEnded(sessionId: string, why: CallerEnd): Promise<void> {
    const keys = this.#bySession.get(sessionId) ?? [];
    this.#bySession.delete(sessionId);
    const ends: Promise<void>[] = [];
    for (const key of keys) {
      const entry = this.#byKey.get(key);
      if (entry === undefined) continue;
      entry.sessions.delete(sessionId);
      if (entry.sessions.size > 0) continue;
      this.#byKey.delete(key);
      ends.push(entry.caller.end(why));
    }
    await Promise.all(ends);
  }

  get size(): number {
    return this.#byKey.size;
  }
}
