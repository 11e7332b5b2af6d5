import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/package-root.js";
import type { Computer } from "./computer.js";

/** The path of the installed executable. */
export function cuaDriver(computer: { dataDir: string }): string {
  const { driver } = JSON.parse(readFileSync(join(packageRoot, "mcp.json"), "utf8")) as {
    driver: { version: string };
  };
  return join(computer.dataDir, "drivers", "cua-driver", driver.version, "cua-driver");
}

/**
 * What cua-driver's own MCP server answers on the computer's daemon, request by request. It runs as the session user, as the
 * daemon serves that user alone.
 */
export async function askCuaMcp(
  computer: Computer,
  requests: { method: string; params?: object }[],
): Promise<unknown[]> {
  const initialize = {
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  const lines = [initialize, ...requests].map((request, id) => JSON.stringify({ jsonrpc: "2.0", id, ...request }));
  const output = await computer.run("python3", "-c", ASK, cuaDriver(computer), computer.socket, JSON.stringify(lines));
  const answers = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: number; result?: unknown; error?: unknown });
  return requests.map((_, index) => {
    const answer = answers.find((each) => each.id === index + 1);
    return answer?.result ?? { error: answer?.error };
  });
}

/** Sends one request after the other's answer, and prints the answers a line each. */
const ASK = `
import json, subprocess, sys
executable, socket, requests = sys.argv[1:]
command = [executable, "mcp", "--socket", socket]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
for request in json.loads(requests):
    server.stdin.write(request.encode() + b"\\n")
    server.stdin.flush()
    sys.stdout.write(server.stdout.readline().decode())
server.kill()`;
