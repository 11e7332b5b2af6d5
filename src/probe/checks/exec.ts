import { randomUUID } from "node:crypto";
import { EXEC_URN } from "../../protocol/computer.js";
import { type BasicCheck, expectSame, expectThat } from "../check.js";

const needs = [EXEC_URN];

/** X: computer-exec. */
export const execChecks: BasicCheck[] = [
  {
    id: "X",
    name: "a command's exit code and both its outputs come back",
    level: "basic",
    needs,
    async run(driver) {
      const answer = await driver.run(["sh", "-c", "echo out; echo err >&2; exit 3"]);
      const wanted = { exit_code: 3, stdout: "out\n", stderr: "err\n", truncated: false, timed_out: false };
      for (const [name, value] of Object.entries(wanted)) expectSame(name, answer[name as keyof typeof wanted], value);
    },
  },
  {
    id: "X",
    name: "a command gets its folder and its variables, and its arguments untouched",
    level: "basic",
    needs,
    async run(driver) {
      const argv = ["sh", "-c", 'pwd; printf "%s\\n" "$PROBED" "$@"', "sh", "two  words", "$HOME", "*", "é\n"];
      const { stdout } = await driver.run(argv, { cwd: "/", env: { PROBED: "a=b c" } });
      expectSame("what it saw", stdout, "/\na=b c\ntwo  words\n$HOME\n*\né\n\n");
    },
  },
  {
    id: "X",
    name: "a command past its time is killed with all that it started",
    level: "basic",
    needs,
    aside: true,
    async run(driver) {
      const started = performance.now();
      const answer = await driver.run(["sh", "-c", "sleep 47 & echo $!; wait"], { timeout_s: 1 });
      const took = performance.now() - started;
      expectSame("timed_out and exit_code", [answer.timed_out, answer.exit_code], [true, null]);
      expectThat(took < 10_000, `it was answered after ${Math.round(took)} ms`);
      const child = answer.stdout.trim();
      expectThat(/^\d+$/.test(child), `what it wrote before is lost: ${JSON.stringify(answer.stdout)}`);
      // One that nobody has reaped yet counts as gone.
      const state = await driver.run(["sh", "-c", `ps -o stat= -p ${child} || true`]);
      expectThat(/^(\s*|\s*Z.*)$/.test(state.stdout.trim()), "what it had started still runs");
    },
  },
  {
    id: "X",
    name: "a repeated request_id joins the running command, or answers its result again",
    level: "basic",
    needs,
    aside: true,
    async run(driver) {
      const request = { argv: ["sh", "-c", "sleep 0.4; date +%s%N"], request_id: `agentenv-probe-${randomUUID()}` };
      const run = () => driver.invoke(EXEC_URN, "run", request);
      const [first, joined] = await Promise.all([run(), run()]);
      expectSame("the answer of the one that joined", joined, first);
      expectSame("the answer of the one that came after", await run(), first);
    },
  },
  {
    id: "X",
    name: "output past max_output_bytes is cut there",
    level: "basic",
    needs,
    aside: true,
    unless: (driver) =>
      Number.isInteger(driver.params(EXEC_URN).max_output_bytes)
        ? undefined
        : "the card doesn't say where output is cut",
    async run(driver) {
      const most = Number(driver.params(EXEC_URN).max_output_bytes);
      const { stdout, truncated } = await driver.run(["sh", "-c", `head -c ${most + 1_000} /dev/zero | tr '\\0' a`]);
      expectSame("how much came, and whether it says that it was cut", [stdout.length, truncated], [most, true]);
    },
  },
  {
    id: "X",
    name: "a program in the background doesn't hold the answer, and outlives it with its output still open",
    level: "basic",
    needs,
    aside: true,
    async run(driver) {
      const started = performance.now();
      // It writes after the answer: one whose pipe was closed would die of it.
      const script = "(sleep 2; echo late; exec sleep 43) & echo $!";
      const { stdout, exit_code } = await driver.run(["sh", "-c", script]);
      const took = performance.now() - started;
      const pid = stdout.trim();
      expectThat(exit_code === 0 && /^\d+$/.test(pid), `it answered ${exit_code} and ${JSON.stringify(stdout)}`);
      try {
        expectThat(took < 1_900, `it was answered after ${Math.round(took)} ms, when the background had written`);
        const alive = await driver.run(["sh", "-c", `sleep 1.3; ps -o stat= -p ${pid}`]);
        expectThat(/^\s*[RSD]/.test(alive.stdout), "the program in the background is gone");
      } finally {
        await driver.during(AbortSignal.timeout(5_000)).run(["kill", "-9", pid]);
      }
    },
  },
  {
    id: "X",
    name: "a program that isn't there is refused invalid_argument",
    level: "basic",
    needs,
    async run(driver) {
      const request = { argv: ["agentenv-probe-no-such-program"], request_id: randomUUID() };
      await driver.invokeRefused(EXEC_URN, "run", request, "invalid_argument", 400);
    },
  },
  {
    id: "X",
    name: "an extension's missing, unknown or mistyped parameter is refused invalid_params",
    level: "basic",
    needs,
    async run(driver) {
      const request = { argv: ["true"], request_id: randomUUID() };
      const { argv: _argv, ...missing } = request;
      for (const params of [missing, { ...request, surprise: 1 }, { ...request, timeout_s: "soon" }]) {
        await driver.invokeRefused(EXEC_URN, "run", params, "invalid_params", 400);
      }
    },
  },
];
