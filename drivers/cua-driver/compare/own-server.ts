import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { request } from "undici";
import type { ComparisonReport, ComparisonRequest } from "../../../src/computer/comparison.js";
import { messageOf, SetupError } from "../../../src/errors.js";
import { extensionEndpoint } from "../../../src/protocol/card.js";
import { EXEC_URN } from "../../../src/protocol/computer.js";
import { QUIET_ENVIRONMENT, StdioServer } from "../executable.js";
import { installedDriver } from "../install.js";
import type { Pin } from "../pin-schema.js";
import { socketPath } from "../service.js";
import { compareServers } from "./compare.js";
import { HttpMcp } from "./http-mcp.js";

/** Compares the environment at a URL with `cua-driver mcp --socket` on the daemon of the same computer. */
export async function compareWithOwnServer(given: ComparisonRequest, pin: Pin): Promise<ComparisonReport> {
  const ours = new HttpMcp(given.url, given.token);
  try {
    const theirs = await ownServer(given, pin);
    try {
      return await compareServers(ours, theirs, given.onProgress);
    } finally {
      await theirs.close();
    }
  } finally {
    await ours.close();
  }
}

/** The daemon serves its own user alone, so its server is started as the user of the computer's session. */
async function ownServer({ url, token, dataDir }: ComparisonRequest, pin: Pin): Promise<StdioServer> {
  const { executable } = installedDriver(dataDir, pin);
  const session = await askSession(url, token);
  const socket = socketPath(session.runtimeDir);
  for (const path of [executable, socket]) {
    if (!existsSync(path))
      throw new SetupError(`${path} isn't there`, { hint: "compare on the computer's own machine" });
  }
  const uid = process.getuid?.();
  if (uid !== 0 && uid !== session.uid) {
    throw new SetupError(`the daemon serves the user ${session.name} alone`, {
      hint: `run it as root or as ${session.name}`,
    });
  }
  const become = ["setpriv", "--reuid", String(session.uid), "--regid", String(session.gid), "--init-groups", "--"];
  const command = [...(uid === 0 ? become : []), executable, "mcp", "--socket", socket];
  const env = { ...QUIET_ENVIRONMENT, HOME: session.home, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };
  const [file = "", ...args] = command;
  return new StdioServer(file, args, { env, cwd: session.home });
}

interface Session {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly runtimeDir: string;
}

const WHO = 'id -un && id -u && id -g && printf "%s\\n" "$HOME" "$XDG_RUNTIME_DIR"';

/** Asks the computer itself who its session's user is, and where its sockets lie. */
async function askSession(url: string, token: string | undefined): Promise<Session> {
  const params = { argv: ["sh", "-c", WHO], request_id: randomUUID(), timeout_s: 10 };
  let answer: { stdout?: string };
  try {
    const response = await request(new URL(extensionEndpoint(EXEC_URN, "run"), url), {
      method: "POST",
      body: JSON.stringify(params),
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    });
    answer = (await response.body.json()) as { stdout?: string };
  } catch (thrown) {
    throw new SetupError(`${url} can't be asked: ${messageOf(thrown)}`, {
      hint: "is a computer running there? `agentenv up` prints its address",
      cause: thrown,
    });
  }
  const [name = "", uid, gid, home = "", runtimeDir = ""] = (answer.stdout ?? "").split("\n");
  if (runtimeDir !== "") return { name, uid: Number(uid), gid: Number(gid), home, runtimeDir };
  throw new SetupError(`${url} doesn't say who its session's user is: ${JSON.stringify(answer)}`, {
    hint: "with tokens it takes one of the scope framework",
  });
}
