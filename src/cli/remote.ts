import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { EnvironmentClient, type EnvironmentClientOptions, findExtension } from "../client/environment-client.js";
import { messageOf, SetupError } from "../errors.js";
import type { McpClient } from "../mcp/client.js";
import { CARD_PATH, Card } from "../protocol/card.js";
import { COMPUTER_URN } from "../protocol/computer.js";
import { serverWords, thrownWords } from "./server-words.js";

/** What every command takes that speaks to an environment which runs already. */
export interface RemoteOptions {
  token?: string;
  role?: string;
  json?: boolean;
}

/** The same as commander hands them over. */
export interface GivenOptions {
  tokenFile?: string;
  role?: string;
  json?: boolean;
}

const BARE_TOKEN = "name a file that holds one token and nothing else: no scope before it";

/** Adds `<url>` and the options of RemoteOptions to a command. */
export function remoteCommand(command: Command): Command {
  return command
    .argument("<url>", "where the environment is served, such as http://127.0.0.1:18765", parseUrl)
    .option("--token-file <file>", "a file that holds the bearer token; else the variable AGENTENV_TOKEN")
    .option("--role <role>", "the role to call as")
    .option("--json", "print JSON for machines");
}

/** Paths that people copy with the address, as a start prints them. */
const COPIED_PATHS = ["/", "/mcp", CARD_PATH];

export function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InvalidArgumentError("It is not an http or https URL, such as http://127.0.0.1:18765.");
  }
  if (!COPIED_PATHS.includes(url.pathname)) {
    throw new InvalidArgumentError(
      `An environment is served at an address without ${url.pathname}, such as ${url.origin}.`,
    );
  }
  return url.origin;
}

/** The options with the token read from where it lies: a token on the command line would be seen by every user. */
export function remoteOptions(options: GivenOptions): RemoteOptions {
  const { tokenFile, ...rest } = options;
  if (tokenFile !== undefined) return { ...rest, token: readToken(tokenFile) };
  const token = process.env.AGENTENV_TOKEN?.trim();
  return { ...rest, ...(token ? { token: bareToken(token, "the variable AGENTENV_TOKEN") } : {}) };
}

function readToken(file: string): string {
  let text: string;
  try {
    text = readFileSync(resolve(process.env.INIT_CWD ?? process.cwd(), file), "utf8");
  } catch (thrown) {
    throw new SetupError(`the token file ${file} can't be read: ${messageOf(thrown)}`, {
      hint: BARE_TOKEN,
      cause: thrown,
    });
  }
  return bareToken(text.trim(), `the token file ${file}`);
}

/** A server's own file of tokens has their scopes before them. The token itself is in no message. */
function bareToken(text: string, where: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const scoped = lines.filter((line) => /^(agent|framework):/.test(line)).length;
  if (scoped === 0 && /^[\x21-\x7e]+$/.test(text)) return text;
  const count = scoped > 0 ? scoped : lines.length;
  const what = `${count} ${count === 1 ? "line" : "lines"}${scoped > 0 ? " of scope:token" : ""}`;
  throw new SetupError(
    count === 1 && scoped === 0
      ? `${where} holds what is no token`
      : `${where} holds ${count === 0 ? "no token" : what}; it takes one bare token`,
    { hint: BARE_TOKEN },
  );
}

/** GETs a path of the environment. What can't be reached is a SetupError that names the address. */
export async function get(
  url: string,
  path: string,
  options: RemoteOptions,
): Promise<{ status: number; body: unknown }> {
  try {
    return await new EnvironmentClient(url, clientOptions(options)).get(path);
  } catch (thrown) {
    throw unreachable(url, thrown);
  }
}

function clientOptions({ token, role }: RemoteOptions): EnvironmentClientOptions {
  return { ...(token === undefined ? {} : { token }), ...(role === undefined ? {} : { role }) };
}

/** Opens an MCP session, does `work` and ends it. */
export async function withSession<T>(
  url: string,
  options: RemoteOptions,
  work: (client: McpClient) => Promise<T>,
): Promise<T> {
  let client: McpClient;
  try {
    client = await new EnvironmentClient(url, clientOptions(options)).mcp();
  } catch (thrown) {
    throw unreachable(url, thrown);
  }
  try {
    return await work(client);
  } catch (thrown) {
    throw answered(thrown);
  } finally {
    await client.close();
  }
}

/** MCP's own errors are numbered and are an answer to what was asked, not a fault of the command line. */
function answered(thrown: unknown): unknown {
  const { code } = thrown as { code?: unknown };
  if (!(thrown instanceof Error) || typeof code !== "number") return thrown;
  return new SetupError(thrown.message.replace(/^MCP error -?\d+: /, ""), { cause: thrown });
}

/** An error that an environment answered with is told by its own message; else nothing answered there. */
function unreachable(url: string, thrown: unknown): SetupError {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  const { code } = thrown as { code?: unknown };
  const words = thrownWords(thrown);
  if (code === 401 || code === 403) return refusal(url, code, words && { error: words });
  if (words !== undefined) {
    return new SetupError(`${url} refuses the call: ${words.message}`, { ...hintOf(words.hint), cause: thrown });
  }
  return new SetupError(`${url} can't be used: ${messageOf(cause) || String((cause as NodeJS.ErrnoException).code)}`, {
    hint: "is an environment running there? `npm start` and `agentenv up` print its address",
    cause: thrown,
  });
}

/** What an answer that isn't a success says to a person. */
export function refusal(url: string, status: number, body: unknown): SetupError {
  const words = serverWords(body);
  const token = "put the token into a file and name it with --token-file FILE, or set the variable AGENTENV_TOKEN";
  if (status === 401) return new SetupError(`${url} asks for a bearer token`, { hint: token });
  if (status === 403) {
    const why = words === undefined ? "" : `: ${words.message}`;
    return new SetupError(`${url} refuses the call${why}`, {
      hint: [...(words?.hint === undefined ? [] : [words.hint]), token].join("\n"),
    });
  }
  if (words !== undefined) return new SetupError(`${url} answered ${status}: ${words.message}`, hintOf(words.hint));
  return new SetupError(`${url} can't be used: it answered ${status}, and not as an environment does`, {
    hint: "`npm start` and `agentenv up` print the address of the environment that they serve",
  });
}

function hintOf(hint: string | undefined): { hint?: string } {
  return hint === undefined ? {} : { hint };
}

/** Throws a SetupError where no computer is served at `url`, as its card says: another kind of env, nothing, a refusal. */
export async function requireComputer(url: string, options: RemoteOptions): Promise<void> {
  const { status, body } = await get(url, CARD_PATH, options);
  if (status !== 200) throw refusal(url, status, body);
  const card = Card.safeParse(body);
  if (card.success && findExtension(card.data, COMPUTER_URN) === undefined) throw noComputer(url);
}

export function noComputer(url: string): SetupError {
  return new SetupError(`the env at ${url} is no computer`, {
    hint: `agentenv tools ${url} lists what it can do; agentenv up bundles/desk starts a computer`,
  });
}
