import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError, Option } from "commander";
import { checkEnv } from "../bundles/check-env.js";
import { type EnvFile, readEnvFile } from "../bundles/env-file.js";
import { readIncludedSkills } from "../bundles/included-skills.js";
import { enterSession } from "../desktop/enter.js";
import { runtimeFolder } from "../desktop/folders.js";
import { messageOf, SetupError } from "../errors.js";
import { listenRefusal } from "../http/listen.js";
import { Tokens } from "../http/tokens.js";
import { packageRoot } from "../package-root.js";
import { skillAnswer } from "../skills/answer.js";
import { dataFolder } from "./data-folder.js";
import type { StartPlan } from "./start-plan.js";
import { storeUrl } from "./store.js";

export interface UpOptions {
  port: number;
  host: string;
  display?: string;
  user?: string;
  tokens?: string;
  insecure?: boolean;
  allowedHost: string[];
  json?: boolean;
  logLevel: string;
  logFile?: string;
  /** Where the skills lie that the env includes by digest. */
  store?: string;
}

/**
 * A server's garbage is mostly pictures, as bytes and as text: large and short-lived. Left alone, V8 gives the text ever more
 * room, and glibc leaves holes where the bytes were: twice the memory after a thousand screenshots, and no faster.
 */
const NODE_OPTIONS = ["--max-semi-space-size=2"];
const MEMORY = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "32768", MALLOC_TRIM_THRESHOLD_: "65536" };

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** `agentenv up [ENV]`: starts an env and stays in the foreground. */
export const upCommand = withStartOptions(
  new Command("up")
    .description("Start an env and serve it until Ctrl-C.")
    .argument("[env]", "a folder with an env.toml", "bundles/desk"),
)
  .addHelpText(
    "after",
    `
Examples:
  $ agentenv up                                  start the desk on port 18765
  $ agentenv up ./my-env --port 0 --json         any free port, told as JSON
  $ agentenv up --host 0.0.0.0 --tokens tokens   reachable from elsewhere`,
  )
  .action(async (env: string, options: UpOptions) => startEnv(envFolder(env), options));

/** Adds what every command takes that starts an env: the options of UpOptions. */
export function withStartOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--port <n>", "the port to listen on, 0 for any free one")
        .env("MCP_PORT")
        .default(18765)
        .argParser(parsePort),
    )
    .addOption(new Option("--host <address>", "the address to listen on").env("MCP_HOST").default("127.0.0.1"))
    .option("--display <display>", ":N for the X server there, started if none answers; env for the variable DISPLAY")
    .option("--user <name>", "the session user (as root; default: the env's, else agent)")
    .option("--tokens <file>", "the bearer tokens that are taken, one scope:token a line; scopes: agent, framework")
    .option("--insecure", "listen beyond loopback without tokens")
    .option("--allowed-host <name>", "a name that requests may use for this server; may be repeated", collect, [])
    .option("--json", "print one line of JSON when it is ready")
    .addOption(new Option("--log-level <level>", "what to log").choices(LEVELS).default("info"))
    .option("--log-file <file>", "log JSON to this file instead of standard error");
}

/** Checks an env and turns this process into its computer, or its server. Throws a SetupError; otherwise it doesn't return. */
export async function startEnv(folder: string, options: UpOptions): Promise<never> {
  const file = readEnvFile(folder);
  const plan = await readPlan(folder, file, options);
  await checkPort(options.host, options.port);
  return enterSession({
    user: options.user ?? file.user,
    runtimeDir: runtimeFolder(options.port),
    dataDir: plan.dataDir,
    server: fileURLToPath(new URL("serve.js", import.meta.url)),
    nodeOptions: NODE_OPTIONS,
    folders: [folder],
    environment: { ENVIRONMENT_NAME: plan.environmentName, ...MEMORY, ...debugging() },
    payload: (locate): StartPlan => ({ ...plan, folder: locate(plan.folder) }),
  });
}

/** Whoever asks for stack traces wants the server's too. */
function debugging(): Record<string, string> {
  const { AGENTENV_DEBUG } = process.env;
  return AGENTENV_DEBUG ? { AGENTENV_DEBUG } : {};
}

/** Relative to where the person stood: npm has moved to the package's folder since. `bundles/desk` is ours from anywhere. */
function envFolder(env: string): string {
  const given = resolve(process.env.INIT_CWD ?? process.cwd(), env);
  const named = env.startsWith("bundles/") && !existsSync(given) ? resolve(packageRoot, env) : given;
  return basename(named) === "env.toml" ? dirname(named) : named;
}

/** Checks all that can be checked before anything is started. */
async function readPlan(folder: string, file: EnvFile, options: UpOptions): Promise<StartPlan> {
  const environmentName = process.env.ENVIRONMENT_NAME || file.name || basename(folder);
  const { module, settings } = checkEnv(folder, file, process.env);
  const included = await readIncludedSkills(folder, file.skills?.include ?? [], storeUrl(options.store));
  const tokens = readTokens(options);
  const display = readDisplay(options.display);
  return {
    folder,
    source: folder,
    file,
    module,
    settings,
    skills: included.map(skillAnswer),
    dataDir: dataFolder(),
    host: options.host,
    port: options.port,
    ...(display === undefined ? {} : { display }),
    ...(tokens === undefined ? {} : { tokens: tokens.toJSON() }),
    allowedHosts: options.allowedHost,
    environmentName,
    log: {
      level: options.logLevel,
      ...(options.logFile === undefined
        ? {}
        : { file: resolve(process.env.INIT_CWD ?? process.cwd(), options.logFile) }),
    },
    json: options.json ?? false,
    commandLine: existsSync(resolve(packageRoot, "scripts", "run.sh")) ? "npm run -s agentenv --" : "agentenv",
  };
}

function readTokens({ host, tokens, insecure }: UpOptions): Tokens | undefined {
  if (tokens !== undefined) {
    const file = resolve(process.env.INIT_CWD ?? process.cwd(), tokens);
    try {
      return Tokens.parse(readFileSync(file, "utf8"), file);
    } catch (thrown) {
      if (thrown instanceof SetupError) throw thrown;
      throw new SetupError(`the tokens file can't be read: ${messageOf(thrown)}`, {
        hint: "write one `agent:TOKEN` or `framework:TOKEN` a line into it, and let only its owner read it",
        cause: thrown,
      });
    }
  }
  const isLoopback = host === "localhost" || host === "::1" || /^127\./.test(host);
  if (!isLoopback && !insecure) {
    throw new SetupError(`${host} is reachable from other machines, and no tokens are asked for`, {
      hint: "name the tokens that are taken with --tokens FILE, or say --insecure if whoever reaches it may use it",
    });
  }
  return undefined;
}

function readDisplay(given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  const display = given === "env" ? process.env.DISPLAY : given;
  if (display !== undefined && /^:\d{1,5}(\.0)?$/.test(display)) return display.replace(/\.0$/, "");
  throw new SetupError(
    given === "env"
      ? `the variable DISPLAY is ${JSON.stringify(display ?? "")}`
      : `--display ${given} names no display`,
    { hint: "a display of this machine is :N, such as :5; without --display the computer gets one of its own" },
  );
}

/** Finds a taken port before anything is started. Whether it is still free is seen when the server listens. */
async function checkPort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  try {
    await new Promise<void>((done, failed) => {
      probe.once("error", failed);
      probe.listen({ host, port }, done);
    });
  } catch (thrown) {
    throw listenRefusal(host, port, thrown);
  } finally {
    probe.close();
  }
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("It is a port, 0 to 65535.");
  return port;
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}
