import type { PromptDefinition, PromptMessage, PromptResult } from "../protocol/prompt.js";
import type { ContentBlock } from "../protocol/tool.js";
import type { Completer, ResourceContext } from "./resource.js";

/** A prompt as the environment serves it. */
export interface ServedPrompt {
  readonly definition: PromptDefinition;
  /** Throws `invalid_argument` for arguments that it doesn't take. */
  get(args: Record<string, string>, context: ResourceContext): Promise<PromptResult>;
  readonly complete?: Readonly<Record<string, Completer>>;
}

/** What a prompt method may return: text or blocks as one message of the user, messages, or a whole result. */
export type PromptAnswer = string | ContentBlock | ContentBlock[] | PromptMessage[] | PromptResult;

/** What a prompt method returned, as `prompts/get` answers it. */
export function toPromptResult(answer: PromptAnswer): PromptResult {
  if (typeof answer === "string") return { messages: [fromUser({ type: "text", text: answer })] };
  if (Array.isArray(answer)) return { messages: answer.map((each) => (isMessage(each) ? each : fromUser(each))) };
  return "messages" in answer ? (answer as PromptResult) : { messages: [fromUser(answer as ContentBlock)] };
}

function isMessage(value: ContentBlock | PromptMessage): value is PromptMessage {
  return "role" in value;
}

function fromUser(content: ContentBlock): PromptMessage {
  return { role: "user", content };
}
