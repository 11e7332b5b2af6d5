import { z } from "zod";

/** What an environment says to a person about a call that it didn't do. */
export interface ServerWords {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** An error as the protocol writes it, and as JSON-RPC does with the rest in `data`. */
const Refused = z.object({
  error: z.object({
    message: z.string(),
    hint: z.string().optional(),
    data: z.object({ hint: z.string().optional() }).optional(),
  }),
});

/** The words of an answer; undefined where it holds none. */
export function serverWords(body: unknown): ServerWords | undefined {
  const { error } = Refused.safeParse(body).data ?? {};
  return error === undefined ? undefined : { message: error.message, hint: error.hint ?? error.data?.hint };
}

/** The same of what MCP's client threw: it puts the answer's body behind words of its own. */
export function thrownWords(thrown: unknown): ServerWords | undefined {
  const [, body] = /(\{.*\})/s.exec(thrown instanceof Error ? thrown.message : "") ?? [];
  if (body === undefined) return undefined;
  try {
    return serverWords(JSON.parse(body));
  } catch {
    return undefined;
  }
}
