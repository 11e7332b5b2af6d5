import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { agentenv, type Computer, computerOf } from "../../harness/computer.js";
import { descendants } from "../../harness/desktop.js";
import { until } from "../../harness/until.js";

interface Health {
  readonly status: number;
  readonly body: { ok?: boolean; ready?: boolean; reasons?: string[] };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** What is answered there; undefined where nothing answers. */
async function health(url: string, path: string): Promise<Health | undefined> {
  try {
    const response = await fetch(`${url}${path}`);
    return { status: response.status, body: (await response.json()) as Health["body"] };
  } catch {
    return undefined;
  }
}

let computer: Computer | undefined;
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

describe("whether a computer is ready, to an orchestrator", () => {
  it("is not yet, with reasons, while it starts, and `ready --wait` begun before it was there ends well", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await using waiting = agentenv(["ready", url, "--wait", "60"]);
    const command = agentenv(["up", "bundles/desk", "--port", String(port), "--json"]);
    const first = await until(() => health(url, "/healthz"), Boolean, { ms: 30_000, every: 2, what: "the server" });
    const starting = await Promise.all([health(url, "/startupz"), health(url, "/readyz")]);
    computer = await computerOf(command);
    expect(first).toEqual({ status: 200, body: { ok: true } });
    for (const each of starting) {
      expect(each).toEqual({ status: 503, body: { ready: false, reasons: expect.any(Array) } });
      expect(each?.body.reasons?.join()).toMatch(/daemon: |accessibility|display: |capture: |tools: /);
    }
    for (const path of ["/startupz", "/readyz"]) {
      expect(await health(url, path)).toEqual({ status: 200, body: { ready: true, reasons: [] } });
    }
    const { code, stdout } = await waiting.exited;
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^ok +display: 1280x800[\s\S]*\nready\n$/)]);
  });

  it("is no longer when its daemon hangs: told apart from a start and from the process's life, and ready again after the restart", async () => {
    const { url, runDir, run } = computer as Computer;
    await run("sh", "-c", `kill -STOP $(cat ${runDir}/cua-driver.pid)`);
    const [ready, startup, life, said] = await Promise.all([
      health(url, "/readyz"),
      health(url, "/startupz"),
      health(url, "/healthz"),
      agentenv(["ready", url]).exited,
    ]);
    expect(ready).toMatchObject({ status: 503, body: { ready: false } });
    expect(ready?.body.reasons?.join("\n")).toMatch(/^daemon: cua-driver didn't answer metadata within 2000 ms/m);
    expect([startup?.status, life?.status]).toEqual([200, 200]);
    expect(said.stdout).toMatch(/^fail daemon: cua-driver didn't answer metadata[\s\S]*\nnot ready\n$/m);
    expect(said.code).toBe(1);
    const waited = await agentenv(["ready", url, "--wait", "30", "--json"]).exited;
    expect([waited.code, JSON.parse(waited.stdout).ready]).toEqual([0, true]);
  });

  it("is said within 5 s to be impossible when the daemon dies again and again before it answers, and comes back", async () => {
    const { url, pid, command } = computer as Computer;
    const begun = performance.now();
    const kill = () => {
      for (const each of descendants(pid).filter(({ comm }) => comm === "cua-driver")) {
        try {
          process.kill(each.pid, "SIGKILL");
        } catch {
          // It was dead already.
        }
      }
    };
    const killing = setInterval(kill, 20);
    onTestFinished(() => clearInterval(killing));
    const failed = await until(
      () => health(url, "/readyz"),
      (seen) => seen?.body.reasons?.join("\n").includes("its service is failed") === true,
      { ms: 7_000, every: 50, what: "a daemon that does not start" },
    );
    expect(performance.now() - begun).toBeLessThan(5_000);
    expect(failed?.status).toBe(503);
    expect((await health(url, "/healthz"))?.status).toBe(200);
    clearInterval(killing);
    const log = command.stderr.split("\n").filter((line) => line.includes('"service":"cua-driver"'));
    const last = JSON.parse(log.find((line) => line.includes('"does not start"')) ?? "{}");
    expect(last).toMatchObject({ why: expect.stringContaining("SIGKILL"), lines: expect.any(Array) });
    const waited = await agentenv(["ready", url, "--wait", "30"]).exited;
    expect(waited.stdout).toMatch(/\nready\n$/);
  });

  it("is said of an address where nothing is, after the wait and not before", async () => {
    const begun = performance.now();
    const { code, stderr } = await agentenv(["ready", `http://127.0.0.1:${await freePort()}`, "--wait", "1"]).exited;
    expect(performance.now() - begun).toBeGreaterThan(1_000);
    expect(stderr).toMatch(/can't be used: connect ECONNREFUSED/);
    expect(code).toBe(1);
  });
});
