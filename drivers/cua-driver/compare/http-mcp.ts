import { Agent, request } from "undici";
import { messageOf, SetupError } from "../../../src/errors.js";
import { MCP_PATH } from "../../../src/protocol/card.js";

/** Longer than any deadline of the server. */
const ANSWER_MS = 130_000;

/** An MCP server that is asked one request at a time and answers with the whole text of its message. */
export interface TextMcp {
  answer(method: string, params: object): Promise<string>;
  close(): Promise<void>;
}

/** An environment's MCP endpoint, spoken to without a client between, so that its answers are seen as it wrote them. */
export class HttpMcp implements TextMcp {
  readonly #agent = new Agent({ headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
  readonly #url: URL;
  #session: string | undefined;
  #id = 0;

  constructor(
    url: string,
    private readonly token: string | undefined,
  ) {
    this.#url = new URL(MCP_PATH, url);
  }

  async answer(method: string, params: object): Promise<string> {
    this.#id += 1;
    const { headers, text } = await this.#send("POST", { jsonrpc: "2.0", id: this.#id, method, params });
    if (method === "initialize") this.#session = String(headers["mcp-session-id"]);
    return text;
  }

  async close(): Promise<void> {
    if (this.#session !== undefined) await this.#send("DELETE").catch(() => {});
    await this.#agent.destroy();
  }

  async #send(method: "POST" | "DELETE", message?: object) {
    try {
      const response = await request(this.#url, {
        method,
        dispatcher: this.#agent,
        headers: {
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
          ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
        },
        ...(message === undefined ? {} : { body: JSON.stringify(message) }),
      });
      return { headers: response.headers, text: await response.body.text() };
    } catch (thrown) {
      throw new SetupError(`${this.#url} can't be asked: ${messageOf(thrown)}`, {
        hint: "is an environment running there? `agentenv up` prints its address",
        cause: thrown,
      });
    }
  }
}
