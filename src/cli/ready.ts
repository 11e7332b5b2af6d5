import { Command, InvalidArgumentError } from "commander";
import { extensionEndpoint } from "../protocol/card.js";
import { print, printJson, styled } from "./output.js";
import { type GivenOptions, get, type RemoteOptions, remoteCommand, remoteOptions } from "./remote.js";

interface Status {
  ready: boolean;
  checks: { name: string; ok: boolean; detail: string }[];
}

/** `agentenv ready URL`: whether a computer can be used now, and what is missing. */
export const readyCommand = remoteCommand(new Command("ready"))
  .description("Say whether an environment can be used now. The exit code is 0 when it is ready, 1 when it isn't.")
  .option("--wait <seconds>", "wait this long for it to become ready", parseSeconds, 0)
  .addHelpText("after", "\nExample:\n  $ agentenv ready http://127.0.0.1:18765 --wait 30")
  .action(async (url: string, given: GivenOptions & { wait: number }) => {
    const options = remoteOptions(given);
    const deadline = performance.now() + given.wait * 1000;
    let status = await attempt(url, options, deadline);
    while (!status?.ready && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      status = await attempt(url, options, deadline);
    }
    if (options.json) printJson(status);
    else show(status);
    if (!status?.ready) process.exitCode = 1;
  });

/** One look; while there is time left, a server that isn't there yet is only not ready. */
async function attempt(url: string, options: RemoteOptions, deadline: number): Promise<Status | undefined> {
  try {
    return await look(url, options);
  } catch (thrown) {
    if (performance.now() >= deadline) throw thrown;
    return undefined;
  }
}

async function look(url: string, options: RemoteOptions): Promise<Status> {
  const endpoint = extensionEndpoint("urn:agentenv:computer-ready/v1", "status");
  const answer = await get(url, endpoint, options);
  if (answer.status === 200) return answer.body as Status;
  const { status, body } = await get(url, "/readyz", options);
  const reasons = (body as { reasons?: string[] }).reasons ?? [];
  return { ready: status === 200, checks: reasons.map((detail) => ({ name: "environment", ok: false, detail })) };
}

function show(status: Status | undefined): void {
  for (const check of status?.checks ?? []) {
    print(`${check.ok ? styled("green", "ok  ") : styled("red", "fail")} ${check.name}: ${check.detail}`);
  }
  print(status?.ready ? "ready" : "not ready");
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds < 0)
    throw new InvalidArgumentError("It is a number of seconds, such as 30.");
  return seconds;
}
