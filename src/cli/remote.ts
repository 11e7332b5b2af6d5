import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { EnvironmentClient, type EnvironmentClientOptions } from "../client/environment-client.js";
import { messageOf, SetupError } from "../errors.js";
import type { McpClient } from "../mcp/client.js";

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

/** Adds `<url>` and the options of RemoteOptions to a command. */
export function remoteCommand(command: Command): Command {
  return command
    .argument("<url>", "where the environment is served, such as http://127.0.0.1:18765", parseUrl)
    .option("--token-file <file>", "a file that holds the bearer token; else the variable AGENTENV_TOKEN")
    .option("--role <role>", "the role to call as")
    .option("--json", "print JSON for machines");
}

export function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InvalidArgumentError("It is not an http or https URL, such as http://127.0.0.1:18765.");
  }
  return url.origin;
}

/** The options with the token read from where it lies: a token on the command line would be seen by every user. */
export function remoteOptions(options: GivenOptions): RemoteOptions {
  const { tokenFile, ...rest } = options;
  const token = tokenFile === undefined ? process.env.AGENTENV_TOKEN : readToken(tokenFile);
  return { ...rest, ...(token === undefined || token === "" ? {} : { token }) };
}

function readToken(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (thrown) {
    throw new SetupError(`the token file ${file} can't be read: ${messageOf(thrown)}`, { cause: thrown });
  }
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
  if (code === 401 || code === 403) return refusal(url, code, undefined);
  return new SetupError(`${url} can't be used: ${messageOf(cause) || String((cause as NodeJS.ErrnoException).code)}`, {
    hint: "is an environment running there? `npm start` and `agentenv up` print its address",
    cause: thrown,
  });
}

/** What an answer that isn't a success says to a person. */
export function refusal(url: string, status: number, body: unknown): SetupError {
  if (status === 401 || status === 403) {
    return new SetupError(`${url} ${status === 401 ? "asks for a bearer token" : "refuses this token"}`, {
      hint: "put the token into a file and name it with --token-file FILE, or set the variable AGENTENV_TOKEN",
    });
  }
  return new SetupError(`${url} answered ${status}: ${JSON.stringify(body)}`);
}
