import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";

const run = promisify(execFile);

/** Others that forward a stdio server over HTTP, at the versions that they are measured in. */
const NPM_PEERS = { "mcp-proxy": "6.7.19", supergateway: "4.0.0" };
const FASTMCP = "fastmcp==4.2.3";
const FOLDER = join(packageRoot, ".agentenv", "bench-peers");

/** A server that is being measured. */
export interface Peer {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  close(): Promise<void>;
}

/** Installs the peers beside the clone's own packages, once. */
export async function installPeers(): Promise<void> {
  const done = join(FOLDER, "installed");
  const wanted = JSON.stringify([NPM_PEERS, FASTMCP]);
  if (existsSync(done) && readFileSync(done, "utf8") === wanted) return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), JSON.stringify({ private: true, dependencies: NPM_PEERS }));
  await run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: FOLDER, timeout: 300_000 });
  await run("python3", ["-m", "venv", join(FOLDER, "venv")], { timeout: 120_000 });
  await run(join(FOLDER, "venv/bin/pip"), ["install", "--quiet", FASTMCP], { timeout: 600_000 });
  writeFileSync(done, wanted);
}

/** Starts each way of forwarding the program, ours first. */
export async function startPeers(program: readonly [string, ...string[]], ours: string): Promise<Peer[]> {
  const bin = join(FOLDER, "node_modules");
  const node = process.execPath;
  const proxy = join(FOLDER, "proxy.py");
  const transport = { transport: "stdio", command: program[0], args: program.slice(1) };
  writeFileSync(
    proxy,
    `import sys
from fastmcp.server import create_proxy
config = ${JSON.stringify({ mcpServers: { default: transport } })}
create_proxy(config).run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", show_banner=False, log_level="error")
`,
  );
  const commands: [name: string, args: (port: number) => string[]][] = [
    [
      "mcp-proxy",
      (port) => [
        node,
        join(bin, "mcp-proxy/dist/bin/mcp-proxy.mjs"),
        "--host",
        "127.0.0.1",
        "--port",
        `${port}`,
        "--server",
        "stream",
        "--",
        ...program,
      ],
    ],
    [
      "supergateway",
      (port) => [
        node,
        join(bin, "supergateway/dist/index.js"),
        "--stdio",
        program.join(" "),
        ...["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", `${port}`],
      ],
    ],
    ["FastMCP's proxy", (port) => [join(FOLDER, "venv/bin/python"), proxy, `${port}`]],
  ];
  const peers = [await startOurs([node, "--expose-gc", ours, ...program])];
  for (const [name, args] of commands) peers.push(await start(name, args));
  return peers;
}

async function startOurs([file = "", ...args]: string[]): Promise<Peer> {
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return {
    name: "ours",
    url: `http://127.0.0.1:${Number(line.toString())}/mcp`,
    pid: child.pid ?? 0,
    close: () => end(child.pid),
  };
}

async function start(name: string, command: (port: number) => string[]): Promise<Peer> {
  const port = await freePort();
  const [file = "", ...args] = command(port);
  const child = spawn(file, args, { stdio: "ignore", detached: true });
  const url = `http://127.0.0.1:${port}/mcp`;
  const deadline = Date.now() + 60_000;
  while (
    !(await fetch(url, { method: "GET" }).then(
      () => true,
      () => false,
    ))
  ) {
    if (Date.now() > deadline || child.exitCode !== null) throw new Error(`${name} doesn't listen`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { name, url, pid: child.pid ?? 0, close: () => end(-(child.pid ?? 0)) };
}

/** Ends a process, or with a negative id its whole group. */
async function end(pid = 0): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended, or its group has.
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
