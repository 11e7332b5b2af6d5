import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Commands } from "../../../src/computer/exec.js";
import { ComputerSettings } from "../../../src/computer/settings.js";
import { AgentEnvError } from "../../../src/errors.js";
import type { ExecRequest } from "../../../src/protocol/computer.js";
import { FakeLog, type FakeSession, fakeSession } from "../../fakes/computer-session.js";
import { until } from "../../harness/until.js";

let session: FakeSession;
let commands: Commands;
let count = 0;

beforeEach(() => {
  session = fakeSession();
  commands = make(session);
});

afterEach(async () => {
  await commands.close();
  session[Symbol.dispose]();
});

function make({ user }: FakeSession, settings: object = {}, drainMs = 200): Commands {
  return new Commands(user, () => ComputerSettings.parse(settings), new FakeLog(), drainMs);
}

function sh(script: string, more: Partial<ExecRequest> = {}): ExecRequest {
  count += 1;
  return { argv: ["sh", "-c", script], request_id: `r${count}`, ...more };
}

async function refusal(request: ExecRequest, by = commands): Promise<[string, string]> {
  try {
    await by.run(request);
  } catch (thrown) {
    if (thrown instanceof AgentEnvError) return [thrown.code, thrown.applied];
    throw thrown;
  }
  throw new Error("it was not refused");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function pidIn(file: string): Promise<number> {
  const path = join(session.user.home, file);
  return Number(await until(() => (existsSync(path) ? readFileSync(path, "utf8").trim() : ""), Boolean));
}

describe("a command", () => {
  it("answers its exit code and what it wrote", async () => {
    expect(await commands.run(sh("echo out; echo oops >&2; exit 3"))).toEqual({
      exit_code: 3,
      stdout: "out\n",
      stderr: "oops\n",
      truncated: false,
      timed_out: false,
    });
  });

  it("runs in the home with the session's environment, and nothing of the server's", async () => {
    process.env.AGENTENV_TEST_TOKEN = "secret";
    const { stdout } = await commands.run(sh("pwd; env"));
    delete process.env.AGENTENV_TEST_TOKEN;
    expect(stdout.split("\n")[0]).toBe(session.user.home);
    expect(stdout).toContain(`HOME=${session.user.home}\n`);
    expect(stdout).not.toContain("secret");
  });

  it("takes a folder relative to the home, and additions to the environment", async () => {
    await commands.run(sh("mkdir -p a/b"));
    expect((await commands.run(sh("pwd; echo $MORE", { cwd: "a/b", env: { MORE: "more" } }))).stdout).toBe(
      `${session.user.home}/a/b\nmore\n`,
    );
    expect((await commands.run(sh("pwd", { cwd: "/" }))).stdout).toBe("/\n");
  });

  it("that a signal ended answers the signal's number, negative", async () => {
    expect(await commands.run(sh("kill -9 $$"))).toMatchObject({ exit_code: -9, timed_out: false });
  });

  it("has its output cut at the limit, and says so", async () => {
    const capped = make(session, { exec_output_bytes: 1_000 });
    const result = await capped.run(sh("head -c 5000 /dev/zero | tr '\\0' a; printf b >&2"));
    expect([result.stdout, result.stderr, result.truncated]).toEqual(["a".repeat(1_000), "b", true]);
    const whole = await capped.run(sh("head -c 1000 /dev/zero | tr '\\0' a"));
    expect([whole.stdout.length, whole.truncated]).toEqual([1_000, false]);
  });

  it("whose output is no UTF-8 is answered all the same", async () => {
    expect((await commands.run(sh("printf 'a\\377b'"))).stdout).toBe("a\ufffdb");
  });

  it("is killed at its timeout, with its whole group", async () => {
    const result = await commands.run(sh("sleep 60 & echo $! >child; echo begun; sleep 60", { timeout_s: 0.2 }));
    expect(result).toMatchObject({ exit_code: null, stdout: "begun\n", timed_out: true });
    const child = await pidIn("child");
    await until(() => !isAlive(child));
  });

  it.each([
    [{ argv: [] }, "invalid_argument"],
    [{ argv: [""] }, "invalid_argument"],
    [{ argv: ["no-such-program-here"] }, "invalid_argument"],
    [{ argv: ["/etc/passwd"] }, "invalid_argument"],
    [{ argv: ["echo", "a\0b"] }, "invalid_argument"],
    [{ argv: ["true"], request_id: "" }, "invalid_argument"],
    [{ argv: ["true"], cwd: "not/there" }, "invalid_argument"],
    [{ argv: ["true"], timeout_s: 0 }, "invalid_argument"],
    [{ argv: ["true"], timeout_s: 3_601 }, "invalid_argument"],
  ])("%j is refused as %s", async (request, code) => {
    expect(await refusal({ request_id: "once", ...request })).toEqual([code, "no"]);
  });

  it("that can't be started isn't remembered: a fixed one of the same request_id runs", async () => {
    expect(await refusal({ argv: ["no-such-program-here"], request_id: "again" })).toEqual(["invalid_argument", "no"]);
    expect(await commands.run({ argv: ["echo", "now"], request_id: "again" })).toMatchObject({ stdout: "now\n" });
  });

  it("is refused where the session user is root", async () => {
    const root = fakeSession(0);
    expect(await refusal(sh("id"), make(root))).toEqual(["permission_denied", "no"]);
    root[Symbol.dispose]();
  });
});

describe("a repeated request_id", () => {
  it("joins the command while it runs, and answers its result afterwards, starting it once", async () => {
    const request = sh("echo x >>ran; until [ -e go ]; do sleep 0.01; done; cat ran");
    const both = [commands.run(request), commands.run({ ...request, argv: ["echo", "another"] })];
    await until(() => existsSync(join(session.user.home, "ran")));
    await commands.run(sh("touch go"));
    const [first, second] = await Promise.all(both);
    expect([first, second, await commands.run(request)]).toEqual([first, first, first]);
    expect(first?.stdout).toBe("x\n");
  });

  it("answers one of the last 256 results, and runs anew what is older", async () => {
    const stamp = async (id: string) =>
      (await commands.run({ argv: ["sh", "-c", "date +%s%N"], request_id: id })).stdout;
    const first = await stamp("kept");
    for (let n = 0; n < 255; n += 1) await commands.run({ argv: ["true"], request_id: `other ${n}` });
    expect(await stamp("kept")).toBe(first);
    await commands.run({ argv: ["true"], request_id: "one more" });
    expect(await stamp("kept")).not.toBe(first);
  });
});

describe("a background child that keeps the output open", () => {
  it("doesn't hold the answer, and isn't killed by a closed pipe", async () => {
    const from = performance.now();
    const result = await commands.run(
      sh(
        "(i=0; while [ $i -lt 400 ]; do echo 'line of the child, long enough to fill a pipe in the end'; i=$((i+1)); done; until [ -e go ]; do sleep 0.01; done; head -c 300000 /dev/zero; echo $? >wrote) & echo begun",
      ),
    );
    expect(performance.now() - from).toBeLessThan(3_000);
    expect(result).toMatchObject({ exit_code: 0, stdout: expect.stringMatching(/begun/) });
    await commands.run(sh("touch go"));
    expect(await pidIn("wrote")).toBe(0);
  });

  it("is bounded in number, and the refusal says how to start programs that stay", async () => {
    const many = make(session, {}, 0);
    for (let n = 0; n < 128; n += 1) await many.run(sh("sleep 5 & echo $! >>sleepers"));
    try {
      await many.run(sh("true"));
      throw new Error("it was not refused");
    } catch (thrown) {
      expect(thrown).toMatchObject({
        code: "limit_exceeded",
        applied: "no",
        hint: expect.stringContaining("/dev/null"),
      });
    } finally {
      for (const pid of readFileSync(join(session.user.home, "sleepers"), "utf8").trim().split("\n"))
        process.kill(Number(pid));
    }
    await until(async () => (await many.run(sh("echo again")).catch(() => undefined))?.stdout === "again\n");
    await many.close();
  });
});

describe("commands", () => {
  it("are bounded in number", async () => {
    const running = Array.from({ length: 64 }, () => commands.run(sh("sleep 30")));
    expect(await refusal(sh("true"))).toEqual(["limit_exceeded", "no"]);
    await commands.close();
    await Promise.all(running);
  });

  it("don't keep a computer from closing whose background child holds the output", async () => {
    const slow = make(session, {}, 9_000);
    const running = slow.run(sh("setsid sleep 5 & echo $! >child"));
    const child = await pidIn("child");
    const from = performance.now();
    await slow.close();
    expect(performance.now() - from).toBeLessThan(1_000);
    expect(await running).toMatchObject({ timed_out: false });
    process.kill(child);
  });

  it("that run are killed with their groups when the computer is closed, and none starts after", async () => {
    const running = commands.run(sh("sleep 60 & echo $! >child; wait"));
    const child = await pidIn("child");
    await commands.close();
    expect(await running).toMatchObject({ exit_code: -9, timed_out: false });
    await until(() => !isAlive(child));
    expect(await refusal(sh("true"))).toEqual(["device_unavailable", "no"]);
  });
});
