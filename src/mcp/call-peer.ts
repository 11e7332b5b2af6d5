import type { ClientPeer, RequestKey } from "../environment/client-peer.js";
import { AgentEnvError } from "../errors.js";
import { memberText } from "../protocol/json-text.js";
import type { LogLevel } from "../protocol/prompt.js";
import type { JsonObject } from "../protocol/tool.js";
import type { McpRequest } from "./own-requests.js";
import type { McpSession } from "./session.js";

/** The client of one request, while it is being answered. */
export class CallPeer implements ClientPeer {
  #paramsText: string | undefined;

  constructor(
    readonly session: McpSession,
    private readonly request: McpRequest,
  ) {}

  get requestId(): RequestKey {
    return this.request.id;
  }

  get paramsText(): string {
    this.#paramsText ??= memberText(this.request.source.text, "params") ?? "{}";
    return this.#paramsText;
  }

  notify(method: string, params: JsonObject): void {
    if (this.request.signal.aborted) return;
    if (method === "notifications/message" && !this.session.logs(params.level as LogLevel)) return;
    this.session.notify(method, params, this.request.id);
  }

  async ask(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { kind, text } = await this.session.ask(method, JSON.stringify(params), this.request.id, signal);
    const answer = JSON.parse(text) as JsonObject;
    if (kind === "result") return answer;
    const words = String(answer.message ?? "no reason");
    throw new AgentEnvError("delivery_failed", `the client answered ${method} with an error: ${words}`, {
      applied: "no",
    });
  }

  detach(retryMs: number): void {
    this.session.transport.release(this.request.id, retryMs);
  }
}
