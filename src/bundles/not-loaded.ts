import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { AgentEnvError, messageOf, SetupError } from "../errors.js";

const IMPORT_MS = 5_000;

/** What was to be loaded: a file of `folder`, which may be a copy of the folder that its author knows. */
export interface Loaded {
  readonly file: string;
  readonly folder: string;
  readonly source: string;
}

/** What an author reads about a class that can't be loaded: the own file, the line, and what to do. */
export function notLoaded(thrown: unknown, { file, folder, source }: Loaded): SetupError {
  // Node keeps where a file breaks off from the error that it throws, and prints it at the end of a process alone.
  const at =
    lineIn(stackOf(thrown), folder) ?? (thrown instanceof SyntaxError ? lineIn(printed(file), folder) : undefined);
  const where = at === undefined ? file : `${at.file}, line ${at.line}`;
  const message = `${where}: it can't be loaded: ${namedMessage(thrown)}`.replaceAll(folder, source);
  return new SetupError(message, { hint: hintFor(thrown, file), cause: thrown });
}

/** The same about a class that was loaded and then threw while it was started. What no file of the folder threw is as it was. */
export function notStarted(thrown: unknown, { folder, source }: Omit<Loaded, "file">): unknown {
  if (thrown instanceof SetupError || thrown instanceof AgentEnvError) return thrown;
  const at = lineIn(stackOf(thrown), folder);
  if (at === undefined) return thrown;
  const message = `${at.file}, line ${at.line}: ${namedMessage(thrown)}`.replaceAll(folder, source);
  return new SetupError(message, { hint: "correct what it does while it is started", cause: thrown });
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? "") : "";
}

function namedMessage(thrown: unknown): string {
  return `${thrown instanceof Error && thrown.name !== "Error" ? `${thrown.name}: ` : ""}${messageOf(thrown)}`;
}

function hintFor(thrown: unknown, file: string): string {
  const { code } = thrown as NodeJS.ErrnoException;
  if (/\.[mc]?ts$/.test(file) && (thrown instanceof SyntaxError || code?.endsWith("_TYPESCRIPT_SYNTAX"))) {
    return "a TypeScript file with decorators has to be built first: name the .js file";
  }
  if (code === "ERR_MODULE_NOT_FOUND") {
    return "install the packages that it imports in the env's folder, and write paths as they are there, with their endings";
  }
  return thrown instanceof SyntaxError ? "correct its syntax there" : "correct what it does while it is loaded";
}

/** The first line of a file of the folder that the text names, as stacks do. */
function lineIn(text: string, folder: string): { file: string; line: number } | undefined {
  const forms = [
    { base: pathToFileURL(folder).href, decoded: decodeURIComponent },
    { base: folder, decoded: String },
  ];
  for (const { base, decoded } of forms) {
    for (const rest of text.split(base).slice(1)) {
      const [, path, line] = /^(\/[^\n:]+):(\d+)/.exec(rest) ?? [];
      if (path !== undefined) return { file: `${folder}${decoded(path)}`, line: Number(line) };
    }
  }
  return undefined;
}

/** What Node prints of a file that it can't read as JavaScript. Nothing of it runs: it fails before. */
function printed(file: string): string {
  const program = `import(${JSON.stringify(pathToFileURL(file).href)})`;
  const args = ["--input-type=module", "--eval", program];
  const { stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: IMPORT_MS });
  return stderr ?? "";
}
