import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/package-root.js";
import type { Computer } from "./computer.js";

/** The path of the installed executable. */
export function cuaDriver(computer: { dataDir: string }): string {
  const { driver } = JSON.parse(readFileSync(join(packageRoot, "mcp.json"), "utf8")) as {
    driver_version: string;
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
  // Its answers come in order of completion; standard input stays open until the last one is there.
  const script = `
    fifo=$(mktemp -u); mkfifo "$fifo"
    "$0" mcp --socket "$1" <"$fifo" 2>/dev/null | head -n "$3" &
    exec 3>"$fifo"; printf '%s' "$2" >&3; wait $!; exec 3>&-; rm -f "$fifo"`;
  const output = await computer.run(
    "bash",
    "-c",
    script,
    cuaDriver(computer),
    computer.socket,
    `${lines.join("\n")}\n`,
    String(lines.length),
  );
  const answers = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: number; result?: unknown; error?: unknown });
  return requests.map((_, index) => {
    const answer = answers.find((each) => each.id === index + 1);
    return answer?.result ?? { error: answer?.error };
  });
}
