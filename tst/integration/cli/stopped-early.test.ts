import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { agentenv, type Exit, envFolder, linkPackage } from "../../harness/computer.js";

/** As a shell has it. */
const CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** `agentenv up`, with a signal to it after that many milliseconds, unless it is ready by then: undefined. */
async function interrupted(env: string, signal: keyof typeof CODES, ms: number): Promise<Exit | undefined> {
  const command = agentenv(["up", env, "--port", "0", "--json"]);
  await new Promise((resolve) => setTimeout(resolve, ms));
  command.child.kill(signal);
  const exit = await command.exited;
  return exit.stdout === "" ? exit : undefined;
}

describe("agentenv up that is ended before it was ready", () => {
  // Wherever the start is by then, and however long it takes on this machine.
  const steps = [50, 150, 300, 450, 600, 750, 900, 1050, 1200];
  it.each([
    ["bundles/desk", "SIGINT"],
    ["bundles/reference", "SIGTERM"],
    ["bundles/reference", "SIGINT"],
  ] as const)("of %s by %s has the exit code that a shell gives to it, not that of a success", async (env, signal) => {
    let early = 0;
    for (const ms of steps) {
      const exit = await interrupted(env, signal, ms);
      if (exit === undefined) continue;
      early += 1;
      const code = exit.signal === signal ? CODES[signal] : exit.code;
      expect({ ms, code, stderr: exit.stderr }).toMatchObject({ code: CODES[signal] });
      expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
    }
    expect(early).toBeGreaterThan(2);
  });

  it("after it was ready ends well", async () => {
    // A terminal that is closed sends SIGHUP, and Ctrl-\ SIGQUIT.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
      const command = agentenv(["up", "bundles/reference", "--port", "0", "--json", "--log-level", "warn"]);
      await command.ready();
      command.child.kill(signal);
      expect({ by: signal, ...(await command.exited) }).toMatchObject({ signal: null, code: 0, stderr: "" });
    }
  });

  it("ends well where the env's own class throws at its close, which is logged", async () => {
    using env = envFolder('type = "class"\nmodule = "env.mjs#Mine"\n');
    const member = 'close() { throw new Error("still at work"); }';
    const text = `import { Environment } from "agent-env";\nexport class Mine extends Environment { ${member} }\n`;
    writeFileSync(join(env.folder, "env.mjs"), text);
    linkPackage(env.folder);
    const command = agentenv(["up", env.folder, "--port", "0", "--json"]);
    await command.ready();
    command.child.kill("SIGTERM");
    const exit = await command.exited;
    expect(exit.code).toBe(0);
    expect(exit.stderr).toMatch(/stopping was not clean/);
  });
});
