/** Runs as the session user: `node cua-driver-measure.js MCP_URL SOCKET EXECUTABLE`; prints the sections as JSON. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { RawHttp, RawMcp, StdioMcp, socketCall, startServer } from "./clients.js";
import { row, takeTurns } from "./measure.js";

const [url = "", socket = "", executable = ""] = process.argv.slice(2);
const relayScript = join(dirname(fileURLToPath(import.meta.url)), "bare-relay.js");
const folder = mkdtempSync(join(tmpdir(), "bench-"));
const list = join(folder, "list.json");

const mcp = await RawMcp.open(url);
writeFileSync(list, JSON.stringify(await mcp.ask("tools/list")));
const bare = await startServer(relayScript, [socket, list]);
const relay = new RawHttp(bare.url);
const stdio = await StdioMcp.open(executable, ["mcp", "--socket", socket]);
await mcp.tool("computer_screenshot");

const size = { name: "get_screen_size", args: {} };
const calls = await takeTurns(
  [
    { name: "ours over HTTP", run: () => mcp.tool(size.name) },
    { name: "the daemon's socket", run: () => socketCall(socket, size.name) },
    { name: "bare relay over HTTP", run: () => relay.post({ method: "call", ...size }) },
    { name: "cua-driver mcp over stdio", run: () => stdio.ask("tools/call", { name: size.name, arguments: {} }) },
  ],
  500,
);
const shots = await takeTurns(
  [
    { name: "computer_screenshot", run: () => mcp.tool("computer_screenshot") },
    { name: "get_desktop_state on the socket", run: () => socketCall(socket, "get_desktop_state") },
  ],
  40,
  3,
);
const lists = await takeTurns(
  [
    { name: "tools/list", run: () => mcp.ask("tools/list") },
    { name: "the same bytes, bare", run: () => relay.get() },
  ],
  200,
);

await mcp.close();
await relay.close();
await stdio.close();
await bare.close();
rmSync(folder, { recursive: true });

console.log(
  JSON.stringify([
    {
      title: "get_screen_size",
      rows: [
        row(calls, "ours over HTTP", "bare relay over HTTP", { most: 2 }),
        row(calls, "ours over HTTP", "cua-driver mcp over stdio", { most: 1 }),
        row(calls, "bare relay over HTTP"),
        row(calls, "cua-driver mcp over stdio"),
        row(calls, "the daemon's socket"),
      ],
    },
    {
      title: "a screenshot, 1280x800",
      rows: [
        row(shots, "computer_screenshot", "get_desktop_state on the socket", { most: 1.1 }),
        row(shots, "get_desktop_state on the socket"),
      ],
    },
    {
      title: "tools/list",
      rows: [row(lists, "tools/list", "the same bytes, bare"), row(lists, "the same bytes, bare")],
    },
  ]),
);
