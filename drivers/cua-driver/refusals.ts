import { z } from "zod";

/** The name that `REFUSED_REQUESTS` gives the method that there isn't. */
export const UNKNOWN_METHOD = "agentenv/unknown";

/**
 * Requests that `cua-driver mcp` refuses, one for each way in which a request can be wrong. Its answers are read from the
 * executable with the rest of what it serves, so that ours are in its words.
 */
export const REFUSED_REQUESTS = {
  noToolName: ["tools/call", {}],
  badArguments: ["tools/call", { name: "get_screen_size", arguments: [] }],
  resourceCursor: ["resources/list", { cursor: "x" }],
  noResourceUri: ["resources/read", {}],
  unknownResource: ["resources/read", { uri: "skill://cua-driver/UNKNOWN.md" }],
  skillCursor: ["skills/list", { cursor: "x" }],
  noSkillUri: ["skills/get", {}],
  unknownSkill: ["skills/get", { uri: "skill://cua-driver/UNKNOWN.md" }],
  unknownMethod: [UNKNOWN_METHOD, {}],
} as const satisfies Record<string, readonly [method: string, params: object]>;
export type RefusalName = keyof typeof REFUSED_REQUESTS;

const names = Object.keys(REFUSED_REQUESTS) as [RefusalName, ...RefusalName[]];

/** For each of them the JSON-RPC error object as text. */
export const Refusals = z.record(z.enum(names), z.string());
export type Refusals = z.infer<typeof Refusals>;
