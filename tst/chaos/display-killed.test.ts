import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { McpClient } from "../../src/mcp/client.js";
import { agentenv, type Computer, startComputer } from "../harness/computer.js";
import { runPublishedProbe } from "../harness/published-probe.js";
import { until } from "../harness/until.js";
import { XTestClient } from "../harness/x-client.js";

let computer: Computer;
let agent: McpClient;
beforeAll(async () => {
  computer = await startComputer();
  agent = await computer.connect();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

/** The pid of the X server, as its socket tells it. */
const X_SERVER = `
import socket, struct, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/tmp/.X11-unix/X" + sys.argv[1])
    print(struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])`;

describe("the X server killed with SIGKILL", () => {
  it("comes back with all that shows on it, and what comes meanwhile is told that nothing happened", async () => {
    await agent.call("computer_screenshot", {});
    const hasWindow = async () => {
      const { structuredContent } = await agent.call("list_windows", {});
      return ((structuredContent?.windows as object[] | undefined) ?? []).length > 0;
    };
    await until(hasWindow, Boolean, { ms: 30_000, what: "a window" });
    const server = (await computer.run("python3", "-c", X_SERVER, computer.display.slice(1))).trim();
    await computer.run("kill", "-9", server);
    const seen: { code?: unknown; applied?: unknown }[] = [];
    const back = performance.now();
    await until(
      async () => {
        const click = await agent.call("computer_click", { x: 600, y: 700 });
        if (click.isError) seen.push(click.structuredContent ?? {});
        const shot = await agent.call("computer_screenshot", {});
        return click.isError !== true && shot.isError !== true;
      },
      Boolean,
      { ms: 15_000, what: "a click and a screenshot that work" },
    );
    console.log(`the display was away for ${Math.round(performance.now() - back)} ms`);
    for (const { code, applied } of seen) {
      expect(["device_unavailable", "delivery_failed", "stale_frame", "internal"]).toContain(code);
      if (code !== "delivery_failed") expect(applied).toBe("no");
    }
    await until(hasWindow, Boolean, { ms: 30_000, what: "the window again" });
    const ready = await until(
      async () => (await fetch(`${computer.url}/readyz`)).status,
      (status) => status === 200,
      { ms: 10_000 },
    );
    expect(ready).toBe(200);

    // What is typed arrives on the new display.
    using x = await XTestClient.open(computer.display);
    const window = await x.window();
    expect((await agent.call("computer_type", { text: "back" })).isError).not.toBe(true);
    await window.presses(4);
  });

  it("with its daemon at the same time comes back too, and passes both probes at full", async () => {
    const server = (await computer.run("python3", "-c", X_SERVER, computer.display.slice(1))).trim();
    await computer.run("sh", "-c", `kill -9 ${server} $(cat ${computer.runDir}/cua-driver.pid)`);
    const usable = async () =>
      (await agent.call("computer_screenshot", {})).isError !== true &&
      ((await agent.call("list_windows", {})).structuredContent?.windows as object[] | undefined)?.length === 1;
    await until(usable, Boolean, { ms: 30_000, every: 50, what: "a screenshot, and the window" });
    const { checks, passed } = await runPublishedProbe(computer.url);
    expect(checks.filter(({ status }) => status === "failed" || status === "unverified")).toEqual([]);
    expect(passed).toBe(true);
    const ours = await agentenv(["probe", computer.url, "--level", "full"]).exited;
    expect(ours.stdout).toMatch(/ 0 failed, 0 unverified/);
    expect(ours.code).toBe(0);
  });
});
