import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { messageOf, SetupError } from "../errors.js";
import { type CheckResult, countsOf, type Level, type ProbeReport } from "../probe/report.js";
import { runProbe } from "../probe/run.js";
import { reportFailure } from "./failure.js";
import { unlessInterrupted } from "./interrupted.js";
import { print, styled } from "./output.js";
import { parseUrl, remoteOptions, requireComputer } from "./remote.js";
import { thrownWords } from "./server-words.js";

const MARKS = {
  passed: ["green", "pass"],
  failed: ["red", "FAIL"],
  unverified: ["yellow", "----"],
  not_applicable: ["dim", "n/a "],
} as const;

interface Given {
  level: Level;
  json?: string;
  tokenFile?: string;
  timeout: number;
}

/** `agentenv probe URL`: holds a driver to computer/v1. */
export const probeCommand = new Command("probe")
  .description(
    "Hold a computer's driver to computer/v1, over the wire alone. At level full a window of the probe's own is brought onto " +
      "the computer, acted on and taken away again: nobody else should use the computer meanwhile. The exit code is 1 when a " +
      "check failed, and 2 when nothing could be probed.",
  )
  .argument("<url>", "where the driver is served, such as http://127.0.0.1:18765", parseUrl)
  .addOption(
    new Option("--level <level>", "basic needs nothing on the computer").choices(["basic", "full"]).default("full"),
  )
  .option("--json <file>", "write the report to this file too")
  .option("--timeout <seconds>", "how long one call may take", parseSeconds, 30)
  .option(
    "--token-file <file>",
    "a file that holds a bearer token of scope framework; else the variable AGENTENV_TOKEN",
  )
  .addHelpText("after", "\nExample:\n  $ agentenv probe http://127.0.0.1:18765 --json report.json")
  .action(async (url: string, given: Given) => {
    const report = await probe(url, given).catch((thrown: unknown) => {
      process.exitCode = 2;
      reportFailure(thrown instanceof SetupError ? thrown : unprobed(url, thrown));
    });
    if (report === undefined) return;
    summarize(report);
    if (given.json !== undefined) writeReport(resolve(process.env.INIT_CWD ?? process.cwd(), given.json), report);
    if (!report.passed) process.exitCode = 1;
  });

async function probe(url: string, given: Given): Promise<ProbeReport | undefined> {
  const options = remoteOptions(given.tokenFile === undefined ? {} : { tokenFile: given.tokenFile });
  await requireComputer(url, options);
  const { token } = options;
  return await unlessInterrupted("taking the fixture away", (signal) =>
    runProbe(url, {
      level: given.level,
      timeoutMs: given.timeout * 1000,
      signal,
      onResult: show,
      ...(token === undefined ? {} : { token }),
    }),
  );
}

function show({ check, name, status, detail, difference }: CheckResult): void {
  const [colour, mark] = difference === true ? (["cyan", "diff"] as const) : MARKS[status];
  print(`${styled(colour, mark)} ${check} ${name}${detail === "" ? "" : `: ${detail}`}`);
}

function summarize({ driver, level, checks, extensions, ms }: ProbeReport): void {
  const { passed, failed, unverified, not_applicable } = countsOf(checks);
  const differences = checks.filter(({ difference }) => difference === true).length;
  print("");
  for (const [uri, verdict] of Object.entries(extensions)) print(`${verdict.padEnd(10)} ${uri}`);
  const aside = differences === 0 ? "" : `, of them ${differences} explained differences`;
  print(
    `${driver}: ${passed} passed, ${failed} failed, ${unverified} unverified, ${not_applicable} not applicable${aside}, ` +
      `at level ${level} in ${(ms / 1000).toFixed(1)} s`,
  );
}

function unprobed(url: string, thrown: unknown): SetupError {
  const words = thrownWords(thrown);
  return new SetupError(`${url} can't be probed: ${words?.message ?? messageOf(thrown)}`, {
    hint: words?.hint ?? "is a computer running there? `npm start` and `agentenv up` print its address",
    cause: thrown,
  });
}

function writeReport(file: string, report: ProbeReport): void {
  try {
    writeFileSync(file, `${JSON.stringify(report, null, 1)}\n`);
  } catch (cause) {
    throw new SetupError(`the report can't be written to ${file}: ${messageOf(cause)}`, { cause });
  }
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 3_600) return seconds;
  throw new InvalidArgumentError("It is a number of seconds, such as 30.");
}
