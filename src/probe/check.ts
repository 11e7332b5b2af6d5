import type { Driver } from "./driver.js";
import type { Board } from "./fixture/board.js";

/** The ids of the published probe's checks: what they are about. X is what one extension has of its own. */
export type CheckId = "P0" | "P1" | "P2" | "P3" | "P4" | "P5" | "P6" | "P7" | "P8" | "P9" | "X";

interface AnyCheck {
  readonly id: CheckId;
  /** The sentence that it proves. */
  readonly name: string;
  /** URNs that the card has to declare; the result counts for them. */
  readonly needs?: readonly string[];
  /** Why the driver needn't pass it, by what its card says. */
  readonly unless?: (driver: Driver) => string | undefined;
  /** Why it can't be looked at, where the check has no way to. */
  readonly unverified?: string;
  /** How long it may take, in milliseconds. Default 20,000. */
  readonly deadlineMs?: number;
}

/** A check that needs nothing on the computer and sends as little input as it can. */
export interface BasicCheck extends AnyCheck {
  readonly level: "basic";
  /** It waits more than it does, and nothing of it can be seen by others: it runs beside them. */
  readonly aside?: boolean;
  /** Passes when it resolves; what it throws is what is wrong. */
  run(driver: Driver): Promise<void>;
}

/** A check that acts on the fixture and reads there what arrived. */
export interface FullCheck extends AnyCheck {
  readonly level: "full";
  run(board: Board): Promise<void>;
}

export type Check = BasicCheck | FullCheck;

/** What a check found wrong. */
export class Finding extends Error {
  override readonly name = "Finding";
}

/** Found: the driver does otherwise than our own, and may. The message says why. */
export class Difference extends Error {
  override readonly name = "Difference";
}

/** Found on the way: the check can't say anything about this driver. */
export class NotApplicable extends Error {
  override readonly name = "NotApplicable";
}

/** Throws a Finding unless `holds`. */
export function expectThat(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Finding(otherwise);
}

/** Throws a Finding unless both are the same as JSON. */
export function expectSame(what: string, seen: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(seen), JSON.stringify(wanted)];
  if (is !== should) throw new Finding(`${what} is ${is}, not ${should}`);
}
