import type { RequestId } from "@modelcontextprotocol/sdk/types.js";

/** How many ids of either kind are remembered. */
const MAX_IDS = 256;
const MAX_ID_LENGTH = 256;
/** A request that its cancellation overtook comes soon after it. */
const OVERTAKEN_MS = 10_000;

/**
 * Cancellations that came before the request that they are about: the two are POSTs on connections of their own, and may
 * overtake each other. A request whose cancellation is here already isn't begun.
 */
export class EarlyCancels {
  /** By id, when it was cancelled. */
  readonly #cancelled = new Map<RequestId, number>();
  /** The last requests that were answered or cancelled, whose cancellation came too late. */
  readonly #over = new Set<RequestId>();

  /** Says that a request has been dealt with. */
  over(id: RequestId): void {
    if (isLong(id)) return;
    this.#over.add(id);
    if (this.#over.size > MAX_IDS) this.#over.delete(this.#over.values().next().value as RequestId);
  }

  /** Remembers a cancellation of a request that isn't here. */
  add(id: RequestId): void {
    if (this.#over.has(id) || isLong(id)) return;
    this.#cancelled.set(id, performance.now());
    if (this.#cancelled.size > MAX_IDS) this.#cancelled.delete(this.#cancelled.keys().next().value as RequestId);
  }

  /** Whether the request that has come now was cancelled before. */
  take(id: RequestId): boolean {
    if (this.#cancelled.size === 0) return false;
    const at = this.#cancelled.get(id);
    this.#cancelled.delete(id);
    return at !== undefined && performance.now() - at < OVERTAKEN_MS;
  }
}

/** Whether an id is too long to be remembered. */
function isLong(id: RequestId): boolean {
  return typeof id === "string" && id.length > MAX_ID_LENGTH;
}
