import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentenv, agentenvMain, type Exit, envFolder, RunningCommand } from "../../harness/computer.js";

const DESK = 'type = "computer"\ndriver = "cua-driver"\n';

async function up(args: string[], environment: NodeJS.ProcessEnv = {}): Promise<Exit> {
  return agentenv(["up", ...args], environment).exited;
}

async function upWith(toml: string, args: string[] = []): Promise<Exit> {
  using env = envFolder(toml);
  return await up([env.folder, "--port", "0", ...args]);
}

/** What every refusal has: a message, no stack trace, no success. */
function expectRefusal(exit: Exit, ...says: (string | RegExp)[]): void {
  for (const each of says) expect(exit.stderr).toMatch(each);
  expect(exit.stderr).not.toMatch(/^\s+at .*:\d+/m);
  expect(exit.stdout).toBe("");
  expect(exit.signal).toBeNull();
  expect(exit.code).not.toBe(0);
}

describe("agentenv up refuses, with what to do", () => {
  let taken: ReturnType<typeof createServer>;
  beforeAll(async () => {
    taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    taken.close();
  });

  it("an unknown key, naming the file, the key and what is allowed", async () => {
    expectRefusal(await upWith(`${DESK}colour = "red"\n`), /env\.toml/, /"colour"/, /allowed: type, driver/);
  });

  it("a driver that no alias names", async () => {
    expectRefusal(await upWith('type = "computer"\ndriver = "cua"\n'), /env\.toml/, /driver/, /reference, cua-driver/);
  });

  it("a bad size", async () => {
    expectRefusal(await upWith(`${DESK}[display]\nwidth = -1\nheight = 800\n`), /display\.width/, /320/);
  });

  it("settings that the computer doesn't know, wherever they come from", async () => {
    expectRefusal(await upWith(`${DESK}[settings]\nqueue_wait = 3\n`), /queue_wait/, /queue_wait_s/);
    const exit = await up(["bundles/desk", "--port", "0"], { AGENTENV_COMPUTER_SETTINGS: '{"tap_hold_ms": -5}' });
    expectRefusal(exit, /AGENTENV_COMPUTER_SETTINGS/, /tap_hold_ms/);
  });

  it("a package that isn't installed, and a file that the env doesn't have", async () => {
    const packages = '[apps]\npackages = ["dash", "no-such-package"]\n';
    expectRefusal(
      await upWith(`${DESK}${packages}`),
      /apps\.packages: no-such-package/,
      /apt-get install -y no-such-package/,
    );
    expectRefusal(
      await upWith(`${DESK}[data]\nfiles = { "a.txt" = "../etc/passwd" }\n`),
      /data\.files\."a\.txt"/,
      /env's own folder/,
    );
    expectRefusal(await upWith(`${DESK}[data]\nfiles = { "/etc/x" = "env.toml" }\n`), /data\.files\."\/etc\/x"/);
  });

  it("a folder without an env.toml", async () => {
    expectRefusal(await up(["/nowhere/at/all"]), /no folder \/nowhere\/at\/all/, /bundles\/desk/);
  });

  it("a taken port", async () => {
    const { port } = taken.address() as AddressInfo;
    expectRefusal(await up(["bundles/desk", "--port", String(port)]), new RegExp(`port ${port} .*taken`), /--port/);
  });

  it("a session user that doesn't exist", async () => {
    expectRefusal(
      await up(["bundles/desk", "--port", "0", "--user", "nobody-of-that-name"]),
      /nobody-of-that-name/,
      /useradd/,
    );
  });

  it("a class that is no environment of this very agent-env, which would serve nothing", async () => {
    using env = envFolder('type = "class"\nmodule = "env.mjs#Mine"\n');
    writeFileSync(join(env.folder, "env.mjs"), "export class Mine {}\n");
    expectRefusal(await up([env.folder, "--port", "0"]), /env\.mjs#Mine doesn't extend/, /npx agentenv up/);
  });

  it("a machine with neither a display nor Xvfb", async () => {
    // In a mount namespace of its own, where Xvfb is not a program.
    const hide = 'mount --bind /dev/null /usr/bin/Xvfb && exec "$@"';
    const start = [process.execPath, agentenvMain, "up", "bundles/desk", "--port", "0"];
    const namespace = ["--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"])];
    const child = spawn("unshare", [...namespace, "sh", "-c", hide, "sh", ...start], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    expectRefusal(await new RunningCommand(child).exited, /Xvfb/, /apt-get install .*xvfb/);
  });

  it("a display where no X server answers and none can be started", async () => {
    const exit = await up(["bundles/desk", "--port", "0", "--display", "env"], { DISPLAY: "" });
    expectRefusal(exit, /DISPLAY/);
  });

  it("an address beyond loopback without tokens", async () => {
    expectRefusal(await up(["bundles/desk", "--port", "0", "--host", "0.0.0.0"]), /--tokens/, /--insecure/);
  });

  it("a log file that the session user can't write", async () => {
    const exit = await up(["bundles/desk", "--port", "0", "--log-file", "/nowhere/at/all.log"]);
    expectRefusal(exit, /log file \/nowhere\/at\/all\.log/, /session user/);
  });

  it("an option that there isn't, and a port that is no port", async () => {
    expectRefusal(await up(["bundles/desk", "--prot", "1"]), /--prot/, /--port/);
    expectRefusal(await up(["bundles/desk", "--port", "eighty"]), /--port/, /0 to 65535/);
  });
});
