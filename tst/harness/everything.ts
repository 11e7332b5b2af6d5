import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { until } from "./until.js";

const require = createRequire(import.meta.url);

/** The official everything server's program. */
export const EVERYTHING = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");

export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
  readonly process: ChildProcess;
}

/** The everything server over streamable HTTP, on a free port or a given one. */
export async function everythingServer(port?: number): Promise<ServerProcess> {
  const used = port ?? (await freePort());
  return serverProcess([EVERYTHING, "streamableHttp"], used, { PORT: String(used) });
}

/** The server that misbehaves, over streamable HTTP, on a free port or a given one. */
export async function misbehavingServer(port?: number, env: Record<string, string> = {}): Promise<ServerProcess> {
  const used = port ?? (await freePort());
  return serverProcess([MISBEHAVING, String(used)], used, env);
}

/** The program of the server that misbehaves. */
export const MISBEHAVING = new URL("../fakes/misbehaving-server.mjs", import.meta.url).pathname;

async function serverProcess(args: string[], port: number, env: Record<string, string>): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, { stdio: "ignore", env: { ...process.env, ...env } });
  const url = `http://127.0.0.1:${port}/mcp`;
  await until(
    () =>
      fetch(url, { method: "DELETE" }).then(
        () => true,
        () => false,
      ),
    Boolean,
    { ms: 20_000, what: args.join(" ") },
  );
  return {
    url,
    process: child,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await until(() => child.exitCode !== null || child.signalCode !== null);
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
