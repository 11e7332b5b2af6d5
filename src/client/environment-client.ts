import { McpClient } from "../mcp/client.js";
import { CARD_PATH, Card, type CardExtension, DATA_PLANE_PATH, extensionEndpoint } from "../protocol/card.js";
import type { GetDataParams, Part } from "../protocol/data-plane.js";
import type { JsonObject } from "../protocol/tool.js";
import { errorOf, type JsonAnswer, type RequestOptions, requestJson } from "./json-request.js";
import { RemoteError } from "./remote-error.js";

/** How an EnvironmentClient calls. */
export interface EnvironmentClientOptions extends RequestOptions {
  /** The bearer token: `agent` reaches MCP alone, `framework` everything. */
  token?: string;
  /** Whom to call as. */
  role?: string;
}

/** Data is moved in larger pieces than calls are. */
const DATA_MS = 120_000;

/** An environment at a URL, whoever made it: its card, extensions, data plane, and MCP. */
export class EnvironmentClient {
  readonly #headers: Record<string, string>;
  #card: Card | undefined;

  /** `url` is the environment's base address; `options` hold for every call that doesn't say otherwise. */
  constructor(
    readonly url: string,
    private readonly options: EnvironmentClientOptions = {},
  ) {
    const { token, role } = options;
    this.#headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(role === undefined ? {} : { "agentenv-role": role }),
    };
  }

  /** GETs a path, whatever its answer. Throws a RemoteError where nothing answers. */
  get(path: string, options: RequestOptions = {}): Promise<JsonAnswer> {
    return requestJson(new URL(path, this.url), "GET", this.#headers, undefined, { ...this.options, ...options });
  }

  #post(path: string, body: unknown, options: RequestOptions): Promise<JsonAnswer> {
    return requestJson(new URL(path, this.url), "POST", this.#headers, body, { ...this.options, ...options });
  }

  /** The card, kept once it is read. Throws a RemoteError, `internal` for an answer that is no card. */
  async card(options: RequestOptions = {}): Promise<Card> {
    // Calls that come before it is there read it each, since each has a deadline and a signal of its own.
    this.#card ??= await this.#readCard(options);
    return this.#card;
  }

  async #readCard(options: RequestOptions): Promise<Card> {
    const answer = await this.get(CARD_PATH, options);
    if (answer.status !== 200) throw errorOf(answer);
    const card = Card.safeParse(answer.body);
    if (card.success) return card.data;
    const fields = {
      code: "internal",
      message: `${this.url} answered no card`,
      retryable: false,
      applied: "no",
    } as const;
    throw new RemoteError(fields, answer.status, { cause: card.error });
  }

  /** Whether it can be used now, and why not. */
  async ready(options: RequestOptions = {}): Promise<{ ready: boolean; reasons: string[] }> {
    const { status, body } = await this.get("/readyz", options);
    const { reasons = [] } = (body ?? {}) as { reasons?: string[] };
    return { ready: status === 200, reasons };
  }

  /**
   * Calls an extension's method; `op` names it where the extension has several. Throws a RemoteError with the answer's own
   * fields, and `unsupported` for an extension or a method that the card doesn't have.
   */
  async invoke(uri: string, params: JsonObject = {}, options: RequestOptions & { op?: string } = {}): Promise<unknown> {
    const { method, endpoint } = methodOf(await this.card(options), uri, options.op);
    const answer =
      method === "GET"
        ? await this.get(`${endpoint}${query(params)}`, options)
        : await this.#post(endpoint, params, options);
    if (answer.status < 200 || answer.status > 299) throw errorOf(answer);
    return answer.body;
  }

  /** `data/reset`. */
  async resetData(options: RequestOptions = {}): Promise<void> {
    await this.#data("data/reset", {}, options);
  }

  /** `data/add`. */
  async addData(parts: readonly Part[], options: RequestOptions = {}): Promise<void> {
    await this.#data("data/add", { parts }, options);
  }

  /** `data/get`. */
  async getData(params: GetDataParams = {}, options: RequestOptions = {}): Promise<Part[]> {
    return ((await this.#data("data/get", params, options)) as { parts: Part[] }).parts;
  }

  async #data(method: string, params: object, options: RequestOptions): Promise<unknown> {
    const request = { jsonrpc: "2.0", id: 1, method, params };
    const answer = await this.#post(DATA_PLANE_PATH, request, {
      timeoutMs: this.options.timeoutMs ?? DATA_MS,
      ...options,
    });
    const { result, error } = (answer.body ?? {}) as {
      result?: unknown;
      error?: { code: number; message: string; data?: { code?: string } };
    };
    if (answer.status !== 200) throw errorOf(answer);
    if (error === undefined) return result;
    // A request that wasn't understood did nothing; one that failed on the way may have.
    const refused = error.code !== -32000;
    const fields = {
      code: error.data?.code ?? (refused ? "invalid_params" : "internal"),
      message: error.message,
      retryable: false,
      applied: refused ? "no" : "unknown",
    } as const;
    throw new RemoteError(fields, answer.status, { data: error.data });
  }

  /** Opens an MCP session, as the role of this client; who opens it closes it. */
  mcp(options: RequestOptions = {}): Promise<McpClient> {
    const { token, role, timeoutMs, signal } = { ...this.options, ...options };
    return McpClient.connect(this.url, {
      ...(token === undefined ? {} : { token }),
      ...(role === undefined ? {} : { role }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(signal === undefined ? {} : { signal }),
    });
  }
}

/** An extension on a card, undefined where it has none. */
export function findExtension(card: Card, uri: string): CardExtension | undefined {
  return card.capabilities.extensions?.find((extension) => extension.uri === uri);
}

interface DeclaredMethod {
  readonly method: "GET" | "POST";
  readonly endpoint: string;
}

function methodOf(card: Card, uri: string, op: string | undefined): DeclaredMethod {
  const params = (findExtension(card, uri)?.params ?? {}) as {
    endpoint?: string;
    methods?: Record<string, { method?: string; endpoint?: string }>;
  };
  const methods = params.methods ?? {};
  const names = Object.keys(methods);
  const name = op ?? (names.length === 1 ? names[0] : undefined);
  const declared = name === undefined ? undefined : methods[name];
  if (declared === undefined) {
    const what = op === undefined ? uri : `${op} of ${uri}`;
    const hint = names.length > 0 ? `it has ${names.join(", ")}` : "the card says what there is";
    const fields = {
      code: "unsupported",
      message: `${card.name} has no ${what}`,
      retryable: false,
      applied: "no",
      hint,
    } as const;
    throw new RemoteError(fields, undefined);
  }
  return {
    method: declared.method === "GET" ? "GET" : "POST",
    endpoint: declared.endpoint ?? params.endpoint ?? extensionEndpoint(uri, name),
  };
}

function query(params: JsonObject): string {
  const entries = Object.entries(params)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`;
}
