import { z } from "zod";

/** The environment card, served at `/.well-known/agent-env.json`. Source: AgentEnv protocol 1.0. */
export const PROTOCOL_VERSION = "1.0";
export const CARD_PATH = "/.well-known/agent-env.json";
export const DATA_PLANE_PATH = "/agentenv";
export const MCP_PATH = "/mcp";

/** An extension on the card. */
export const CardExtension = z.object({
  uri: z.string(),
  description: z.string().nullish(),
  /** The extension's features, beside `methods` (and `endpoint`, where it has one unnamed method). */
  params: z.record(z.string(), z.unknown()).nullish(),
  required: z.boolean().nullish(),
});
/** An extension on the card. */
export type CardExtension = z.infer<typeof CardExtension>;

/** A tool on the card. */
export const CardTool = z.object({
  name: z.string(),
  description: z.string().nullish(),
  inputSchema: z.record(z.string(), z.unknown()).nullish(),
});
/** A tool on the card. */
export type CardTool = z.infer<typeof CardTool>;

/** The data plane's operations, each optional. */
export const DATA_OPERATIONS = ["data/reset", "data/add", "data/get"] as const;
/** One of the data plane's operations. */
export type DataOperation = (typeof DATA_OPERATIONS)[number];

/** What an environment says of itself: where it is, what it serves. */
export const Card = z.object({
  name: z.string(),
  protocolVersion: z.string(),
  url: z.string(),
  preferredTransport: z.string(),
  additionalInterfaces: z.array(z.object({ url: z.string(), transport: z.string() })),
  capabilities: z.object({
    extensions: z.array(CardExtension).nullish(),
    tools: z.array(CardTool).nullish(),
    operations: z.array(z.string()).nullish(),
  }),
  get children_environments() {
    return z.array(Card).nullish();
  },
});
/** What an environment says of itself: where it is, what it serves. */
export type Card = z.infer<typeof Card>;

/** `urn:agentenv:computer-display/v1`, op `get` → `/agentenv/ext/computer-display/get`; an unnamed op ends at the name. */
export function extensionEndpoint(urn: string, op?: string): string {
  const name = urn.replace(/^urn:agentenv:/, "").replace(/\/v\d+$/, "");
  return `/agentenv/ext/${name}${op === undefined || op === "" ? "" : `/${op}`}`;
}
