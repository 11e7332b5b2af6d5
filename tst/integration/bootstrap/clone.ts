import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");

/** What a finished program left. */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  ms: number;
}

/**
 * A clone with the project's own scripts and compiler, and little else: no packages to fetch, and a command line that records
 * what it was asked. While the file `hold` exists, that command line stays in whatever it does.
 */
export class Clone {
  readonly folder: string;
  readonly data: string;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "agentenv-clone-"));
    this.data = join(this.folder, "data");
    spawnSync("chmod", ["755", this.folder]);
    cpSync(join(root, "scripts"), join(this.folder, "scripts"), { recursive: true });
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const compiler = "file:stand-ins/typescript";
    const project = { name: "clone", version: "1.0.0", devDependencies: { typescript: compiler } };
    this.write("package.json", JSON.stringify({ ...project, type: "module", scripts }));
    const packages = {
      "": project,
      "node_modules/typescript": { resolved: "stand-ins/typescript", link: true },
      "stand-ins/typescript": { name: "typescript", version: "1.0.0", dev: true },
    };
    this.write("package-lock.json", JSON.stringify({ ...project, lockfileVersion: 3, requires: true, packages }));
    this.write("stand-ins/typescript/package.json", '{ "name": "typescript", "version": "1.0.0" }');
    this.write(
      "stand-ins/typescript/bin/tsc",
      `import(${JSON.stringify(join(root, "node_modules/typescript/bin/tsc"))});`,
    );
    const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8"));
    const typeRoots = [join(root, "node_modules/@types")];
    this.write(
      "tsconfig.json",
      JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots }, include: ["src", "drivers"] }),
    );
    this.write("mcp.json", '{ "driver": { "version": "1.2.3" } }');
    this.write("bundles/desk/env.toml", 'type = "computer"\ndriver = "cua-driver"\n');
    this.write("src/cli/main.ts", COMMAND_LINE);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, text: string): void {
    mkdirSync(resolve(this.path(name), ".."), { recursive: true });
    writeFileSync(this.path(name), text);
  }

  /** What the stand-in command line was asked, a line a call. */
  calls(): string[] {
    return existsSync(this.path("calls")) ? readFileSync(this.path("calls"), "utf8").trimEnd().split("\n") : [];
  }

  start(file: string, args: ReadonlyArray<string>, options: SpawnOptions = {}): ChildProcess {
    const env: NodeJS.ProcessEnv = { AGENTENV_DATA: this.data };
    for (const [name, value] of Object.entries(process.env)) {
      if (!/^(npm_|INIT_CWD$|VITEST|NODE_ENV$|AGENTENV_)/i.test(name)) env[name] = value;
    }
    return spawn(file, args, {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      ...options,
      env: { ...env, ...options.env },
    });
  }

  run(file: string, args: ReadonlyArray<string>, options: SpawnOptions = {}): Promise<Ended> {
    return ended(this.start(file, args, options));
  }

  setUp(level = "run", options: SpawnOptions = {}): Promise<Ended> {
    return this.run(process.execPath, ["scripts/bootstrap.mjs", level], options);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Collects a started program's output until it ends. */
export function ended(child: ChildProcess): Promise<Ended> {
  const started = performance.now();
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (chunk: string) => {
      output[name] += chunk;
    });
  }
  return new Promise((settle, fail) => {
    child.once("error", fail);
    child.once("close", (code, signal) => settle({ code, signal, ...output, ms: performance.now() - started }));
  });
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const COMMAND_LINE = `import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";

const args = process.argv.slice(2);
appendFileSync("calls", \`\${process.pid} \${process.env.INIT_CWD ?? ""} \${args.join(" ")}\\n\`);

function finish(): void {
  if (existsSync("hold")) {
    setTimeout(finish, 10);
    return;
  }
  if (args[0] !== "driver") return;
  const folder = \`\${process.env.AGENTENV_DATA}/drivers/cua-driver/1.2.3\`;
  mkdirSync(\`\${folder}/served\`, { recursive: true });
  writeFileSync(\`\${folder}/cua-driver\`, "");
  writeFileSync(\`\${folder}/served/refusals.json\`, "{}");
}
finish();
`;
