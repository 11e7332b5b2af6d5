import { spawn } from "node:child_process";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../../../src/package-root.js";
import { type Computer, type Ready, RunningCommand, startComputer } from "../../harness/computer.js";
import { processesWith, remains } from "../../harness/processes.js";
import { until } from "../../harness/until.js";

/** What an agent leaves running: a program that it launched, and a child of exec that left its process group and parent. */
async function litter(computer: Pick<Computer, "connect" | "run" | "runDir">): Promise<void> {
  const agent = await computer.connect();
  const launched = await agent.call("launch_app", { name: "xterm" });
  expect(launched.isError, JSON.stringify(launched.content)).not.toBe(true);
  await computer.run("sh", "-c", "setsid sh -c 'sleep 7777 & exec sleep 7776' >/dev/null 2>&1 </dev/null & exit 0");
  const running = () => processesWith(computer.runDir).map((each) => each.command);
  await until(
    running,
    (commands) => ["xterm", "sleep 7777", "sleep 7776"].every((one) => commands.some((each) => each.includes(one))),
    {
      ms: 10_000,
      what: "the programs that the agent started",
    },
  );
}

async function expectNothingLeft(ready: Ready): Promise<void> {
  await until(
    () => remains(ready),
    (left) => left.length === 0,
    { ms: 2_000, what: "a machine without the computer" },
  );
}

describe("a computer that is gone", () => {
  it("leaves nothing behind after SIGTERM to npm", async () => {
    const args = ["start", "--silent", "--", "bundles/desk", "--port", "0", "--json"];
    const npm = new RunningCommand(spawn("npm", args, { cwd: packageRoot, stdio: ["ignore", "pipe", "pipe"] }));
    const ready = await npm.ready();
    expect(processesWith(ready.runDir).length).toBeGreaterThan(5);
    npm.child.kill("SIGTERM");
    const exit = await npm.exited;
    expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
    await expectNothingLeft(ready);
  });

  it("leaves nothing behind after kill -9 of the server, what agents started included", async () => {
    await using computer = await startComputer();
    await litter(computer);
    process.kill(computer.pid, "SIGKILL");
    await expectNothingLeft(computer);
    expect((await computer.command.exited).code).not.toBe(0);
  });

  it("leaves nothing behind after Ctrl-C, and ends with 0", async () => {
    await using computer = await startComputer();
    await litter(computer);
    computer.command.child.kill("SIGINT");
    expect((await computer.command.exited).code).toBe(0);
    await expectNothingLeft(computer);
  });

  it("doesn't take another computer on the machine with it", async () => {
    await using one = await startComputer();
    await using other = await startComputer();
    expect([one.display, one.runDir, one.socket]).not.toEqual([other.display, other.runDir, other.socket]);
    expect(one.display).not.toBe(other.display);
    expect(one.socket).not.toBe(other.socket);
    await one[Symbol.asyncDispose]();
    await expectNothingLeft(one);
    const agent = await other.connect();
    expect((await agent.call("get_screen_size", {})).structuredContent).toMatchObject({ width: 1280, height: 800 });
    expect((await agent.call("computer_screenshot", {})).isError).not.toBe(true);
  });

  it("leaves no zombie while it runs", async () => {
    await using computer = await startComputer();
    await litter(computer);
    await computer.run("sh", "-c", "for i in 1 2 3; do (sleep 0.1 &) ; done");
    await until(
      () => processesWith(computer.runDir).filter((each) => each.state === "Z"),
      (zombies) => zombies.length === 0,
    );
  });
});
