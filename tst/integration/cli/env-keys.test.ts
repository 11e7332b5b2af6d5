import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { agentenv, envFolder, startComputer } from "../../harness/computer.js";
import { until } from "../../harness/until.js";

it("an env's size, apps, name, files and session bounds are what its computer has", async () => {
  using env = envFolder(`
    type = "computer"
    driver = "cua-driver"
    name = "office"
    [display]
    width = 800
    height = 600
    [apps]
    start = ["xterm -T 'a terminal of the env' -e sleep 1000"]
    packages = ["xterm"]
    [data]
    files = { "papers/first note.txt" = "note.txt" }
    [session]
    max = 3
    [settings]
    data_paths = ["papers"]
    default_space = "norm"
  `);
  writeFileSync(join(env.folder, "note.txt"), "grüß dich\n");
  await using computer = await startComputer(env.folder);
  expect(await computer.run("cat", "papers/first note.txt")).toBe("grüß dich\n");
  const card = (await (await fetch(`${computer.url}/.well-known/agent-env.json`)).json()) as { name: string };
  expect(card.name).toBe("office");
  expect((await computer.invoke("computer-display/get")).body).toMatchObject({ width: 800, height: 600 });
  expect((await computer.invoke("computer-spaces/get")).body).toMatchObject({ default_space: "norm" });
  const agent = await computer.connect();
  await until(
    async () => JSON.stringify(await agent.call("list_windows", {})),
    (windows) => windows.includes("a terminal of the env"),
    {
      ms: 10_000,
      what: "the env's own app",
    },
  );
  await Promise.all([computer.connect(), computer.connect()]);
  await expect(computer.connect()).rejects.toThrow(/3 sessions/);
  await computer.run("rm", "-r", "papers");
});

it("an env's idle time ends a session that sends nothing for so long, which a late request is told", async () => {
  using env = envFolder('type = "computer"\ndriver = "reference"\n[session]\nidle_s = 1\n');
  await using computer = await startComputer(env.folder);
  const ask = async (method: string, params: object, session?: string) => {
    const headers = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(session === undefined ? {} : { "mcp-session-id": session }),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(computer.mcp, { method: "POST", headers, body });
    return { status: response.status, text: await response.text(), id: response.headers.get("mcp-session-id") };
  };
  const clientInfo = { name: "agent", version: "1" };
  const { id } = await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  expect((await ask("tools/list", {}, id ?? "")).status).toBe(200);
  // A request would keep it: the first one comes only when the time is over.
  const begun = performance.now();
  await until(
    () => performance.now() - begun,
    (ms) => ms > 1_600,
    { ms: 5_000, every: 100 },
  );
  expect(await ask("tools/list", {}, id ?? "")).toMatchObject({
    status: 404,
    text: expect.stringContaining("it was idle for too long"),
  });
});

it("an env starts from any folder of the clone, and by a path relative to where the person stood", async () => {
  const folder = mkdtempSync(join(packageRoot, ".agentenv", "env-"));
  try {
    writeFileSync(join(folder, "env.toml"), 'type = "computer"\ndriver = "cua-driver"\n');
    await using command = agentenv(["up", `./${basename(folder)}`, "--port", "0", "--json"], {
      INIT_CWD: dirname(folder),
    });
    expect((await command.ready()).display).toMatch(/^:\d+$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
