import { randomUUID } from "node:crypto";
import { EnvironmentClient, type EnvironmentClientOptions, findExtension } from "../client/environment-client.js";
import type { RequestOptions } from "../client/json-request.js";
import { RemoteError } from "../client/remote-error.js";
import type { Card } from "../protocol/card.js";
import { COMPUTER_URN, EXEC_URN, ExecAnswer } from "../protocol/computer.js";
import { DATA_OBJECTS_URN, INTAKE_URN, type Part } from "../protocol/data-plane.js";
import type { JsonObject } from "../protocol/tool.js";
import { expectThat, Finding } from "./check.js";
import { ProbeSession } from "./session.js";

/** How long a command of the probe's may take, in seconds. */
const COMMAND_S = 15;

/**
 * A running driver, seen over the wire alone: its card, MCP sessions, extensions, data plane, and commands through
 * computer-exec. All calls are let go with `signal`; the sessions that were opened are closed with `closeSessions`.
 */
export class Driver {
  readonly #opened: ProbeSession[] = [];

  private constructor(
    readonly url: string,
    private readonly options: EnvironmentClientOptions,
    private readonly client: EnvironmentClient,
    readonly card: Card,
    readonly signal: AbortSignal,
  ) {}

  /** Reads the card. Throws a RemoteError where there is none. */
  static async at(url: string, options: EnvironmentClientOptions, signal: AbortSignal): Promise<Driver> {
    const client = new EnvironmentClient(url, options);
    return new Driver(url, options, client, await client.card({ signal }), signal);
  }

  /** The same driver for one check, whose calls end with `signal`. */
  during(signal: AbortSignal): Driver {
    return new Driver(this.url, this.options, this.client, this.card, signal);
  }

  get declared(): string[] {
    return (this.card.capabilities.extensions ?? []).map(({ uri }) => uri);
  }

  declares(uri: string): boolean {
    return findExtension(this.card, uri) !== undefined;
  }

  /** What the card says of an extension. */
  params(uri: string): JsonObject {
    return findExtension(this.card, uri)?.params ?? {};
  }

  has(uri: string, op: string): boolean {
    return op in ((this.params(uri).methods ?? {}) as JsonObject);
  }

  /** A number of computer/v1's params, with the protocol's default where the card has none. */
  limit(name: keyof typeof DEFAULT_LIMITS): number {
    const value = this.params(COMPUTER_URN)[name];
    return typeof value === "number" ? value : DEFAULT_LIMITS[name];
  }

  get buttons(): string[] {
    const { buttons } = this.params(COMPUTER_URN);
    return Array.isArray(buttons) ? buttons.map(String) : ["left"];
  }

  hasKeys(...keys: string[]): boolean {
    const supported = this.params(COMPUTER_URN).keys;
    return !Array.isArray(supported) || keys.every((key) => supported.includes(key));
  }

  /** Why the fixture can't be staged on it, by its card. */
  get lacksForFixture(): string | undefined {
    const intake = this.params(INTAKE_URN).add;
    const lacking = [
      ...(this.declares(EXEC_URN) ? [] : ["computer-exec"]),
      ...(Array.isArray(intake) && intake.length > 0 ? [] : ["data/add"]),
    ];
    return lacking.length === 0 ? undefined : `the fixture needs ${lacking.join(" and ")}, which the card doesn't have`;
  }

  /** Opens a session of its own: a caller of its own. */
  async session(role?: string): Promise<ProbeSession> {
    const client = role === undefined ? this.client : new EnvironmentClient(this.url, { ...this.options, role });
    const mcp = await client.mcp({ signal: this.signal });
    const session = new ProbeSession(mcp, this.signal);
    this.#opened.push(session);
    return session;
  }

  async closeSessions(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((session) => session.close()));
  }

  /** Calls an extension's method. */
  async invoke(uri: string, op: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    const answer = await this.client.invoke(uri, params, { signal: this.signal, ...options, op });
    expectThat(typeof answer === "object" && answer !== null, `${uri} ${op} answered ${JSON.stringify(answer)}`);
    return answer as JsonObject;
  }

  /** A call of an extension that has to be refused; answers the refusal. */
  async invokeRefused(uri: string, op: string, params: JsonObject, code: string, status?: number): Promise<void> {
    let answer: JsonObject;
    try {
      answer = await this.invoke(uri, op, params);
    } catch (thrown) {
      if (!(thrown instanceof RemoteError)) throw thrown;
      expectThat(thrown.code === code, `it was refused ${thrown.code}, not ${code}: ${thrown.message}`);
      expectThat(
        status === undefined || thrown.status === status,
        `it was refused with HTTP ${thrown.status}, not ${status}`,
      );
      return;
    }
    throw new Finding(`it was not refused: ${JSON.stringify(answer)}`);
  }

  /** Runs a command on the computer. */
  async run(argv: readonly string[], more: JsonObject = {}, options: RequestOptions = {}): Promise<ExecAnswer> {
    const request = { argv, request_id: `agentenv-probe-${randomUUID()}`, timeout_s: COMMAND_S, ...more };
    const answer = ExecAnswer.safeParse(await this.invoke(EXEC_URN, "run", request, options));
    expectThat(answer.success, `computer-exec answered no result for ${argv[0]}`);
    return answer.data;
  }

  /** Writes a file below the session user's home. Throws a RemoteError where it is refused. */
  async addFile(path: string, bytes: Buffer): Promise<void> {
    const file = { bytes: bytes.toString("base64") };
    await this.client.addData([{ kind: "file", file, metadata: { [DATA_OBJECTS_URN]: { path } } }], {
      signal: this.signal,
    });
  }

  /** What a path of its answers, as JSON. */
  async get(path: string): Promise<unknown> {
    return (await this.client.get(path, { signal: this.signal })).body;
  }

  getData(): Promise<Part[]> {
    return this.client.getData({}, { signal: this.signal });
  }

  /** Any request to the data plane; answers what came back, whatever it is. */
  async dataPlane(body: unknown): Promise<JsonObject> {
    const { token } = this.options;
    const response = await fetch(new URL(this.card.url, this.url), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
      signal: this.signal,
    });
    return (await response.json()) as JsonObject;
  }
}

/** What a card that doesn't say so means. */
const DEFAULT_LIMITS = {
  max_click_count: 1,
  max_drag_points: 2,
  max_duration_ms: 10_000,
  max_text_length: 10_000,
  max_wait_ms: 60_000,
  max_key_repeat: 100,
  max_scroll_amount: 100,
};
