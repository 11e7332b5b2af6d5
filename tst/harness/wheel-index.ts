import { createReadStream, statSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename } from "node:path";

/** A package index of one wheel (PEP 503), on loopback, that sends it as fast as it is told. */
export class WheelIndex implements AsyncDisposable {
  /** How often the wheel was asked for. */
  downloads = 0;
  /** Sends the beginning of the wheel and then nothing more. */
  stalls = false;
  readonly #server: Server;

  private constructor(private readonly wheel: string) {
    this.#server = createServer((request, response) => this.#answer(request.url ?? "", response));
  }

  static async start(wheel: string): Promise<WheelIndex> {
    const index = new WheelIndex(wheel);
    await new Promise<void>((resolve) => index.#server.listen(0, "127.0.0.1", resolve));
    return index;
  }

  /** What makes pip use this index alone. */
  get environment(): NodeJS.ProcessEnv {
    const { port } = this.#server.address() as AddressInfo;
    return {
      PIP_CONFIG_FILE: "/dev/null",
      PIP_INDEX_URL: `http://127.0.0.1:${port}/simple`,
      PIP_NO_CACHE_DIR: "1",
      PIP_NO_INDEX: undefined,
      PIP_EXTRA_INDEX_URL: undefined,
      PIP_FIND_LINKS: undefined,
    };
  }

  #answer(url: string, response: ServerResponse): void {
    const name = basename(this.wheel);
    if (url.startsWith("/simple/cua-driver")) {
      response.setHeader("content-type", "text/html");
      response.end(`<a href="/files/${name}">${name}</a>`);
    } else if (url === `/files/${name}`) {
      this.downloads += 1;
      response.setHeader("content-length", statSync(this.wheel).size);
      createReadStream(this.wheel, this.stalls ? { end: 2_000_000 } : {}).pipe(response, { end: !this.stalls });
    } else {
      response.statusCode = 404;
      response.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
