import { z } from "zod";
import { COMPUTER_URN } from "../protocol/computer.js";

/**
 * What a probe found. The shape is that of the published probe's report (AgentEnv protocol 1.0), and what is ours stands beside
 * it: how long things took, and where a driver does otherwise in a way that the protocol leaves open.
 */

export const Level = z.enum(["basic", "full"]);
export type Level = z.infer<typeof Level>;

/** `unverified`: it couldn't be looked at. `not_applicable`: the driver doesn't have what it is about. */
export const Status = z.enum(["passed", "failed", "unverified", "not_applicable"]);
export type Status = z.infer<typeof Status>;

export const Verdict = z.enum(["verified", "unverified", "failed"]);
export type Verdict = z.infer<typeof Verdict>;

export const CheckResult = z.object({
  /** P0 to P9, or X for what an extension has of its own. */
  check: z.string(),
  name: z.string(),
  status: Status,
  detail: z.string(),
  /** The URNs that the result counts for. */
  extensions: z.array(z.string()),
  /** Ours: how long the check took, in milliseconds. */
  ms: z.number(),
  /** Ours: the driver does it in another way than our own do, and why it may; its status is then `not_applicable`. */
  difference: z.boolean().optional(),
});
export type CheckResult = z.infer<typeof CheckResult>;

export const ProbeReport = z.object({
  level: Level,
  driver: z.string(),
  /** No check failed. */
  passed: z.boolean(),
  checks: z.array(CheckResult),
  /** Each URN on the card: failed when one of its checks failed, verified when one passed. */
  extensions: z.record(z.string(), Verdict),
  /** Ours. */
  url: z.string(),
  /** ISO 8601, UTC. */
  started_at: z.string(),
  ms: z.number(),
});
export type ProbeReport = z.infer<typeof ProbeReport>;

/** Longer details are cut. */
const MAX_DETAIL = 500;

export function resultOf(
  check: { id: string; name: string; needs?: readonly string[] | undefined },
  status: Status,
  detail: string,
  ms: number,
  difference = false,
): CheckResult {
  const { id, name, needs = [] } = check;
  return {
    check: id,
    name,
    status,
    detail: detail.length <= MAX_DETAIL ? detail : `${detail.slice(0, MAX_DETAIL - 1)}…`,
    // What isn't about one extension alone says something about the computer as a whole.
    extensions: [...new Set(id === "X" ? needs : [COMPUTER_URN, ...needs])],
    ms: Math.round(ms),
    ...(difference ? { difference } : {}),
  };
}

export function verdicts(declared: readonly string[], results: readonly CheckResult[]): Record<string, Verdict> {
  const verdict = (uri: string): Verdict => {
    const statuses = results.filter(({ extensions }) => extensions.includes(uri)).map(({ status }) => status);
    if (statuses.includes("failed")) return "failed";
    return statuses.includes("passed") ? "verified" : "unverified";
  };
  return Object.fromEntries(declared.map((uri) => [uri, verdict(uri)]));
}

export function countsOf(results: readonly CheckResult[]): Record<Status, number> {
  const count = (wanted: Status) => results.filter(({ status }) => status === wanted).length;
  return {
    passed: count("passed"),
    failed: count("failed"),
    unverified: count("unverified"),
    not_applicable: count("not_applicable"),
  };
}
