import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Computer, startComputer } from "../harness/computer.js";
import { until } from "../harness/until.js";

let computer: Computer;
beforeAll(async () => {
  computer = await startComputer();
});
afterAll(async () => {
  await computer?.[Symbol.asyncDispose]();
});

async function killDaemon(): Promise<void> {
  await computer.run("sh", "-c", `kill -9 $(cat ${computer.runDir}/cua-driver.pid)`);
}

describe("the daemon killed with SIGKILL", () => {
  it("is device_unavailable, not applied, until it is back, and back within a second", async () => {
    const agent = await computer.connect();
    const size = () => agent.call("get_screen_size", {});
    expect((await size()).isError).not.toBe(true);
    for (let round = 0; round < 3; round += 1) {
      const seen: unknown[] = [];
      const killed = killDaemon();
      let stop = false;
      const calls = (async () => {
        while (!stop) seen.push((await size()).structuredContent);
      })();
      await killed;
      const dead = performance.now();
      await until(size, (answer) => answer.isError !== true, { ms: 1_000, what: "an answer of the new daemon" });
      expect(performance.now() - dead).toBeLessThan(1_000);
      stop = true;
      await calls;
      for (const answer of seen) {
        const { code, applied, width } = answer as { code?: string; applied?: string; width?: number };
        // A read that was on its way when the daemon died was asked and not answered.
        if (code === "device_unavailable") expect(applied).toBe("no");
        else if (code !== undefined) expect(["delivery_failed"]).toContain(code);
        else expect(width).toBe(1280);
      }
    }
  });

  it("is delivery_failed, applied unknown, for an input whose reply was lost, which is never sent again", async () => {
    const agent = await computer.connect();
    await agent.call("computer_screenshot", {});
    // Long enough to be under way when the daemon dies: 10 ms a character.
    const typing = agent.call("computer_type", { text: "x".repeat(50) });
    await new Promise((resolve) => setTimeout(resolve, 150));
    await killDaemon();
    expect((await typing).structuredContent).toMatchObject({ code: "delivery_failed", applied: "unknown" });
    const after = await until(
      () => agent.call("computer_wait", { ms: 0 }),
      (answer) => answer.isError !== true,
    );
    expect(after.structuredContent).toMatchObject({ waited_ms: 0 });
  });
});
