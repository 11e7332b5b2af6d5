import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** One request as it came, before the store behind has seen it. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  /** 1 for the first request of all. */
  readonly count: number;
}

/**
 * What happens to a request: passed on (undefined), passed on `delay` ms late, answered with an error, its body changed on
 * the way there, its answer's body cut, stalled or changed in the middle, its connection closed before an answer or after the store has done what was asked.
 */
export type Trouble =
  | undefined
  | { delay: number }
  | { status: number; code: string }
  | "cut-before"
  | "cut-after"
  | "cut-body"
  | "flip-request"
  | "flip-body"
  | "stall-body"
  | "hang";

/** Stands in front of an S3 server and makes trouble. Signatures survive, since the Host header is passed on. */
export class FailingS3 implements AsyncDisposable {
  readonly asked: Asked[] = [];
  /** Requests that are not done with yet, whether or not anyone still waits for them. */
  running = 0;
  trouble: (asked: Asked) => Trouble | Promise<Trouble> = () => undefined;
  #server: Server;

  private constructor(private readonly behind: URL) {
    this.#server = createServer((incoming, outgoing) => {
      this.running += 1;
      this.#serve(incoming, outgoing)
        .catch(() => outgoing.destroy())
        .finally(() => {
          this.running -= 1;
        });
    });
  }

  static async before(endpoint: string): Promise<FailingS3> {
    const proxy = new FailingS3(new URL(endpoint));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many requests came while `work` ran. */
  async counting(work: () => Promise<unknown>): Promise<number> {
    const before = this.asked.length;
    await work();
    return this.asked.length - before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = incoming;
    const asked = { method, url, headers, count: this.asked.length + 1 };
    this.asked.push(asked);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const trouble = await this.trouble(asked);
    if (trouble === "hang") return;
    if (trouble === "cut-before") {
      outgoing.destroy();
      return;
    }
    if (typeof trouble === "object" && "status" in trouble) {
      const xml = `<?xml version="1.0"?><Error><Code>${trouble.code}</Code><Message>made trouble</Message></Error>`;
      outgoing.writeHead(trouble.status, { "content-type": "application/xml" }).end(xml);
      return;
    }
    if (typeof trouble === "object") await new Promise((resolve) => setTimeout(resolve, trouble.delay));
    const body = Buffer.concat(chunks);
    if (trouble === "flip-request") flip(body);
    const answer = await this.#ask(method, url, headers, body);
    if (trouble === "cut-after") {
      outgoing.destroy();
      return;
    }
    outgoing.writeHead(answer.status, answer.headers);
    if (trouble === "cut-body") {
      outgoing.write(answer.body.subarray(0, answer.body.length >> 1), () => outgoing.destroy());
      return;
    }
    if (trouble === "stall-body") {
      outgoing.write(answer.body.subarray(0, answer.body.length >> 1));
      return;
    }
    if (trouble === "flip-body") flip(answer.body);
    outgoing.end(answer.body);
  }

  #ask(method: string, url: string, headers: IncomingMessage["headers"], body: Buffer) {
    type Answer = { status: number; headers: IncomingMessage["headers"]; body: Buffer };
    return new Promise<Answer>((resolve, reject) => {
      const { hostname, port } = this.behind;
      const onward = request({ hostname, port, method, path: url, headers }, (answer) => {
        const { statusCode: status = 502, headers } = answer;
        buffer(answer).then((body) => resolve({ status, headers, body }), reject);
      });
      onward.on("error", reject).end(body);
    });
  }
}

function flip(bytes: Buffer): void {
  if (bytes.length > 0) bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
}
