/** Runs as the session user: `node cua-driver-measure.js MCP_URL SOCKET EXECUTABLE DISPLAY`; prints the sections as JSON. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PlainDaemon, RawHttp, RawMcp, StdioMcp, socketCall, startServer } from "./clients.js";
import { rateRow, row, takeRateTurns, takeTurns } from "./measure.js";

const [url = "", socket = "", executable = "", display = ""] = process.argv.slice(2);
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
  1_000,
  1_500,
);
const agents = await Promise.all(Array.from({ length: 32 }, () => RawMcp.open(url)));
const rates = await takeRateTurns(
  [
    { name: "ours over HTTP", callers: agents.map((agent) => () => agent.tool(size.name)) },
    { name: "bare relay over HTTP", callers: agents.map(() => () => relay.post({ method: "call", ...size })) },
  ],
  12,
  500,
);
for (const agent of agents) await agent.close();
const opener = await RawMcp.open(url);
const opening = { jsonrpc: "2.0", id: 1, method: "initialize", params: RawMcp.hello };
const opens = await takeTurns(
  [
    { name: "a session opened", run: () => opener.initialize() },
    { name: "a bare POST", run: () => relay.post(opening, "bare") },
  ],
  400,
  600,
);
const plain = await PlainDaemon.start(executable, join(folder, "plain.sock"), display);
const shots = await takeTurns(
  [
    { name: "computer_screenshot", run: () => mcp.tool("computer_screenshot") },
    { name: "cua-driver serve as it comes, its socket", run: () => socketCall(plain.socket, "get_desktop_state") },
    { name: "our daemon's socket", run: () => socketCall(socket, "get_desktop_state") },
    { name: "bare relay over HTTP", run: () => relay.post({ method: "call", name: "get_desktop_state", args: {} }) },
  ],
  100,
  30,
);
await plain.stop();
const lists = await takeTurns(
  [
    { name: "tools/list", run: () => mcp.ask("tools/list") },
    { name: "the same bytes, bare", run: () => relay.get() },
  ],
  300,
  100,
);

await mcp.close();
await opener.close();
await relay.close();
await stdio.close();
await bare.close();
rmSync(folder, { recursive: true });

console.log(
  JSON.stringify([
    {
      title: "get_screen_size",
      rows: [
        row(calls, "ours over HTTP", "bare relay over HTTP", { most: 1.3 }),
        row(calls, "ours over HTTP", "cua-driver mcp over stdio", { most: 0.6 }),
        row(calls, "bare relay over HTTP"),
        row(calls, "cua-driver mcp over stdio"),
        row(calls, "the daemon's socket"),
      ],
    },
    {
      title: "get_screen_size from 32 sessions at once (ms a call)",
      rows: [
        rateRow(rates, "ours over HTTP", "bare relay over HTTP", { least: 0.7 }),
        rateRow(rates, "bare relay over HTTP"),
      ],
    },
    {
      title: "a session opened",
      rows: [row(opens, "a session opened", "a bare POST", { most: 3 }), row(opens, "a bare POST")],
    },
    {
      title: "a screenshot, 1280x800: computer_screenshot, and get_desktop_state of the others",
      rows: [
        row(shots, "computer_screenshot", "cua-driver serve as it comes, its socket", { most: 1.1 }),
        row(shots, "computer_screenshot", "our daemon's socket"),
        row(shots, "computer_screenshot", "bare relay over HTTP"),
        row(shots, "cua-driver serve as it comes, its socket"),
        row(shots, "our daemon's socket"),
        row(shots, "bare relay over HTTP"),
      ],
    },
    {
      title: "tools/list",
      rows: [row(lists, "tools/list", "the same bytes, bare", { most: 1.3 }), row(lists, "the same bytes, bare")],
    },
  ]),
);
