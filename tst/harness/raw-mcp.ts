import { EventReader } from "../../src/mcp/forward/event-reader.js";
import { memberText } from "../../src/protocol/json-text.js";

/** What a server said in answer to one request: what came before the answer, and the answer, all as it was written. */
export interface RawExchange {
  before: string[];
  result: string | undefined;
  error: string | undefined;
}

/** How the client answers the server's own requests, as JSON texts of results. */
export type RawAnswers = Readonly<Record<string, string>>;

/** An MCP client that reads and writes JSON as text. */
export class RawMcp implements AsyncDisposable {
  #id = 0;
  #session = "";
  readonly #abort = new AbortController();

  private constructor(
    private readonly url: string,
    private readonly answers: RawAnswers,
  ) {}

  /** Initializes; what the server answered is `hello`. Where it doesn't listen it has no connection between requests. */
  static async connect(
    url: string,
    capabilities: object = {},
    answers: RawAnswers = {},
    listens = true,
  ): Promise<RawMcp> {
    const client = new RawMcp(url, answers);
    const info = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "raw", version: "1" } };
    client.hello = await client.request("initialize", JSON.stringify(info));
    await client.post('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    if (listens) await client.#listen();
    return client;
  }

  hello: RawExchange = { before: [], result: undefined, error: undefined };

  async request(method: string, params = "{}"): Promise<RawExchange> {
    this.#id += 1;
    const id = String(this.#id);
    const exchange: RawExchange = { before: [], result: undefined, error: undefined };
    const take = async (text: string) => {
      if (memberText(text, "method") === undefined) {
        if (memberText(text, "id") !== id) return;
        exchange.result = memberText(text, "result");
        exchange.error = memberText(text, "error");
        return;
      }
      exchange.before.push(memberText(text, "id") === undefined ? text : `asked ${memberText(text, "params")}`);
      await this.#told(text);
    };
    const message = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`;
    const response = await this.#send(message);
    if (response.headers.get("content-type")?.startsWith("application/json")) {
      await take(await response.text());
      return exchange;
    }
    await readEvents(response, take);
    return exchange;
  }

  /** What the server said outside of every exchange. */
  readonly unasked: string[] = [];

  /** Listens to what is said unasked, where the server has a stream for it. */
  async #listen(): Promise<void> {
    const headers = {
      accept: "text/event-stream",
      "mcp-session-id": this.#session,
      "mcp-protocol-version": "2025-11-25",
    };
    const response = await fetch(this.url, { headers, signal: this.#abort.signal });
    if (response.status !== 200) return;
    readEvents(response, async (text) => {
      this.unasked.push(text);
      await this.#told(text);
    }).catch(() => {});
  }

  async #told(text: string): Promise<void> {
    const id = memberText(text, "id");
    if (id === undefined) return;
    const method = JSON.parse(memberText(text, "method") ?? "") as string;
    await this.post(`{"jsonrpc":"2.0","id":${id},"result":${this.answers[method] ?? "{}"}}`);
  }

  async post(message: string): Promise<void> {
    await (await this.#send(message)).text();
  }

  async #send(body: string): Promise<Response> {
    const response = await fetch(this.url, {
      method: "POST",
      body,
      signal: this.#abort.signal,
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...(this.#session === "" ? {} : { "mcp-session-id": this.#session, "mcp-protocol-version": "2025-11-25" }),
      },
    });
    this.#session = response.headers.get("mcp-session-id") ?? this.#session;
    return response;
  }

  /** Closes its connections and says nothing, as a client that was killed. */
  drop(): void {
    this.#abort.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await fetch(this.url, { method: "DELETE", headers: { "mcp-session-id": this.#session } }).catch(() => {});
    this.#abort.abort();
  }
}

async function readEvents(response: Response, take: (text: string) => Promise<void>): Promise<void> {
  const taking: Promise<void>[] = [];
  const reader = new EventReader(({ data }) => {
    if (data.trim() !== "") taking.push(take(data));
  });
  for await (const chunk of response.body ?? []) reader.push(chunk as Uint8Array);
  await Promise.all(taking);
}
