import { pipeline } from "node:stream/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Agent, type Dispatcher, request } from "undici";
import { EnvironmentClient } from "../client/environment-client.js";
import { Environment, type Readiness } from "../environment/environment.js";
import type { ForwardedServer } from "../environment/forwarded-server.js";
import { AgentEnvError, messageOf, SetupError } from "../errors.js";
import { forwardMcp } from "../mcp/forward/forward-mcp.js";
import { CARD_PATH, type Card, MCP_PATH } from "../protocol/card.js";
import { childCard } from "./child-card.js";

const CHILDREN = "/children";
const CARD_MS = 10_000;
/** The data plane's own limit. Source: AgentEnv protocol 1.0. */
const BODY_BYTES = 1 << 30;

/** What belongs to one connection, or says who may use the gateway itself. */
const NOT_PASSED_ON = new Set([
  ...["authorization", "connection", "content-length", "expect", "host", "keep-alive", "origin", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);

/** An environment behind a gateway. */
export interface GatewayChild {
  /** Its base address. */
  readonly url: string;
  /** Its bearer token. */
  readonly token?: string;
}

/**
 * Serves several environments behind one address. Their tools, resources and prompts are the gateway's own, each request
 * saying in `_meta` which role and session it comes from; their cards are below `children_environments` with endpoints
 * under `/children/NAME`, where all of each is reached. A name that two of them serve is refused.
 */
export class Gateway extends Environment {
  readonly #children: ReadonlyMap<string, GatewayChild>;
  readonly #servers: ForwardedServer[];
  readonly #cards = new Map<string, Card>();
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

  /** `children` by the names under which they are served. Throws a SetupError for a name or a URL that is none. */
  constructor(children: Readonly<Record<string, GatewayChild>>) {
    super();
    for (const [name, { url }] of Object.entries(children)) {
      if (/^[\w.-]+$/.test(name) && URL.canParse(url)) continue;
      throw new SetupError(`a gateway can't serve ${JSON.stringify(name)} at ${JSON.stringify(url)}`, {
        hint: "a name has letters, digits, '.', '_' and '-'; a URL is such as http://127.0.0.1:18765",
      });
    }
    this.#children = new Map(Object.entries(children));
    this.#servers = [...this.#children].map(([name, { url, token }]) =>
      forwardMcp({ name, url: new URL(MCP_PATH, url).href, headers: authorization(token), stamped: true }),
    );
  }

  override forwardedServers(): ForwardedServer[] {
    return this.#servers;
  }

  override childCards(): Promise<Card[]> {
    return Promise.all([...this.#children].map(([name, child]) => this.#cardOf(name, child)));
  }

  /** A child's card with the endpoints that it has here; as it was last read while the child can't be reached. */
  async #cardOf(name: string, { url, token }: GatewayChild): Promise<Card> {
    const client = new EnvironmentClient(url, token === undefined ? {} : { token });
    try {
      const card = childCard(await client.card({ timeoutMs: CARD_MS }), name, `${CHILDREN}/${name}`);
      this.#cards.set(name, card);
      return card;
    } catch (thrown) {
      const known = this.#cards.get(name);
      if (known !== undefined) return known;
      throw new AgentEnvError("device_unavailable", `the card of ${name} can't be read: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  override async readiness(): Promise<Readiness> {
    const reasons = await Promise.all(
      [...this.#children].map(async ([name, { url }]) => {
        try {
          const { ready, reasons: why } = await new EnvironmentClient(url).ready({ timeoutMs: CARD_MS });
          return ready
            ? []
            : why.map((reason) => `${name}: ${reason}`).concat(why.length === 0 ? [`${name} isn't ready`] : []);
        } catch (thrown) {
          return [`${name}: ${messageOf(thrown)}`];
        }
      }),
    );
    return { ready: reasons.flat().length === 0, reasons: reasons.flat() };
  }

  override routes(app: FastifyInstance): void {
    app.all(`${CHILDREN}/:name/*`, { bodyLimit: BODY_BYTES }, (incoming, reply) => this.#pass(incoming, reply));
  }

  /** Passes a request on to a child, and what it answers back, as it comes; its card alone says other endpoints. */
  async #pass(incoming: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { name } = incoming.params as { name: string };
    const child = this.#children.get(name);
    if (child === undefined) {
      throw new AgentEnvError("target_unavailable", `no environment here is called ${JSON.stringify(name)}`, {
        hint: `there are ${[...this.#children.keys()].join(", ")}`,
      });
    }
    const path = incoming.url.slice(`${CHILDREN}/${name}`.length);
    if (path === CARD_PATH && incoming.method === "GET") {
      await reply.send(await this.#cardOf(name, child));
      return;
    }
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    let response: Dispatcher.ResponseData;
    try {
      response = await request(new URL(path, child.url), {
        method: incoming.method as Dispatcher.HttpMethod,
        dispatcher: this.#agent,
        headers: { ...passedOn(incoming.headers), ...authorization(child.token) },
        body: (incoming.body as Buffer | undefined) ?? null,
        signal: gone.signal,
      });
    } catch (thrown) {
      const { syscall } = thrown as NodeJS.ErrnoException;
      const sent = syscall !== "connect" && syscall !== "getaddrinfo";
      throw new AgentEnvError(sent ? "delivery_failed" : "device_unavailable", `${name} can't be reached`, {
        cause: thrown,
      });
    }
    reply.hijack();
    reply.raw.writeHead(response.statusCode, passedOn(response.headers));
    // A stream's head goes out before its first event.
    reply.raw.flushHeaders();
    await pipeline(response.body, reply.raw).catch(() => gone.abort());
  }

  override async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function authorization(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

function passedOn(headers: NodeJS.Dict<string | string[]>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || NOT_PASSED_ON.has(name) ? [] : [[name, value]],
    ),
  );
}
