import { rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A display that passes everything on to another one, and whose connections a test can drop. No memory is shared through it. */
export class XProxy implements AsyncDisposable {
  static #next = 0;
  readonly #open = new Set<Socket>();

  private constructor(
    readonly display: string,
    private readonly server: Server,
    private readonly path: string,
  ) {}

  static async start(target: string): Promise<XProxy> {
    XProxy.#next += 1;
    const number = 10_000 + ((process.pid * 8 + XProxy.#next) % 50_000);
    const path = `/tmp/.X11-unix/X${number}`;
    rmSync(path, { force: true });
    const server = createServer();
    const proxy = new XProxy(`:${number}`, server, path);
    server.on("connection", (near) => {
      const far = connect(`/tmp/.X11-unix/X${target.slice(1)}`);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        proxy.#open.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          proxy.#open.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    return proxy;
  }

  /** Drops all connections, and answers how many there were. */
  drop(): number {
    const count = this.#open.size / 2;
    for (const socket of this.#open) socket.destroy();
    return count;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    await new Promise((resolve) => this.server.close(resolve));
    rmSync(this.path, { force: true });
  }
}
