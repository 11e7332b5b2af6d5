import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { messageOf, SetupError } from "../errors.js";
import { makeFolder } from "../make-folder.js";
import { isCurrentNode, OLDEST_NODE } from "../node-version.js";
import { packageRoot } from "../package-root.js";
import { shellWord } from "../shell-word.js";
import { note, print, printJson } from "./output.js";

const UNUSED = "name a folder that isn't there yet, or an empty one";
const BROUGHT_NODE = "24.x";

interface InitOptions {
  package?: string;
  json?: boolean;
}

/** `agentenv init DIR`: a new env that is a class, with a test, ready to start. */
export const initCommand = new Command("init")
  .description("Write a new env: a class with a tool and data, types, and a passing test.")
  .argument("<dir>", "the folder to write, which may be there if it is empty")
  .option("--package <spec>", "what its package.json names as agent-env (default: this very package)")
  .option("--json", "print JSON for machines")
  .addHelpText("after", "\nExample:\n  $ agentenv init my-env && cd my-env && npm install && npm test && npm start")
  .action((dir: string, options: InitOptions) => {
    // npm moves to the package's folder; the person stood elsewhere.
    const folder = resolve(process.env.INIT_CWD ?? process.cwd(), dir);
    const files = filesOf(folder, options.package ?? ownSpec());
    write(folder, files);
    if (options.json) {
      printJson({ folder, files: Object.keys(files) });
      return;
    }
    note(`wrote ${folder}`);
    print(`cd ${shellWord(dir)} && npm install && npm test && npm start`);
  });

/** How another package names this one: by its version where it was installed, by its folder where it is a clone. */
function ownSpec(): string {
  const { version } = ownPackage();
  return basename(dirname(packageRoot)) === "node_modules" ? `^${version}` : `file:${packageRoot}`;
}

/**
 * npm runs the scripts of the new env with the Node on PATH. Where that one is too old, or there is none, the env brings its
 * own: npm's packages that are the Node binary itself, of which it installs the one for the machine.
 */
function ownNode(): { optionalDependencies?: Record<string, string> } {
  const { stdout } = spawnSync("node", ["--version"], { encoding: "utf8" });
  if (isCurrentNode(stdout ?? "")) return {};
  return {
    optionalDependencies: Object.fromEntries(["x64", "arm64"].map((arch) => [`node-linux-${arch}`, BROUGHT_NODE])),
  };
}

function ownPackage(): {
  version: string;
  devDependencies: Record<string, string>;
  dependencies: Record<string, string>;
} {
  return JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as ReturnType<typeof ownPackage>;
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  try {
    const there = statSync(folder, { throwIfNoEntry: false });
    if (there?.isDirectory() === false) throw new SetupError(`${folder} is a file`, { hint: UNUSED });
    if (there !== undefined && readdirSync(folder).length > 0) {
      throw new SetupError(`${folder} is not empty`, { hint: UNUSED });
    }
    makeFolder(folder);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  } catch (thrown) {
    if (thrown instanceof SetupError) throw thrown;
    throw new SetupError(`${folder} can't be written: ${messageOf(thrown)}`, {
      hint: "choose a folder that you may write",
      cause: thrown,
    });
  }
}

/** The files of a new env, by name. */
function filesOf(folder: string, spec: string): Record<string, string> {
  const words = basename(folder)
    .toLowerCase()
    .match(/[a-z0-9]+/g) ?? ["env"];
  const slug = words.join("-");
  const Class = classNamed(words);
  const { devDependencies, dependencies } = ownPackage();
  return {
    "env.toml": `# What \`agentenv up .\` starts. The class has decorators, so it is built first: npm start does.
type = "class"
module = "dist/env.js#${Class}"
`,
    "package.json": `${JSON.stringify(
      {
        name: slug,
        private: true,
        type: "module",
        engines: { node: `>=${OLDEST_NODE}` },
        scripts: {
          build: "tsc",
          start: "tsc && exec agentenv up .",
          test: 'tsc && exec node --test "dist/*.test.js"',
        },
        dependencies: { "agent-env": spec, zod: dependencies.zod },
        devDependencies: { "@types/node": devDependencies["@types/node"], typescript: devDependencies.typescript },
        ...ownNode(),
      },
      null,
      2,
    )}
`,
    "tsconfig.json": `${JSON.stringify(
      {
        compilerOptions: {
          target: "ES2022",
          module: "NodeNext",
          strict: true,
          rootDir: ".",
          outDir: "dist",
          types: ["node"],
        },
        include: ["*.ts"],
      },
      null,
      2,
    )}
`,
    ".gitignore": "node_modules/\ndist/\n",
    "env.ts": envSource(Class),
    "env.test.ts": testSource(Class),
  };
}

/** What the files below import, beside which a class of the same name couldn't stand. */
const IMPORTED: readonly string[] = ["Environment", "EnvironmentClient", "Part"];

function classNamed(words: readonly string[]): string {
  const name = words
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")
    .replace(/^(?=\d)/, "Env");
  return IMPORTED.includes(name) || name in globalThis ? `${name}Env` : name;
}

function envSource(Class: string): string {
  return `import { addData, Environment, getData, type Part, resetData, serverInstructions, tool } from "agent-env";
import { z } from "zod";

/** Keeps notes: replace it with what your agents act in. */
export class ${Class} extends Environment {
  #notes: string[] = [];

  @serverInstructions
  welcome(): string {
    return "Keep notes with write, and read them with list.";
  }

  @tool({ description: "Writes a note down.", input: z.object({ note: z.string().min(1) }) })
  write({ note }: { note: string }): string {
    this.#notes.push(note);
    return \`note \${this.#notes.length}\`;
  }

  @tool({
    description: "Lists the notes.",
    input: z.object({}),
    output: z.object({ notes: z.array(z.string()) }),
    annotations: { readOnlyHint: true },
  })
  list() {
    return { notes: this.#notes };
  }

  @resetData
  reset(): void {
    this.#notes = [];
  }

  @addData
  add(parts: Part[]): void {
    for (const part of parts) {
      if (part.kind !== "text") throw new Error("only text is taken");
      this.#notes.push(part.text);
    }
  }

  @getData
  get(): Part[] {
    return this.#notes.map((text) => ({ kind: "text", text }));
  }
}
`;
}

function testSource(Class: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { EnvironmentClient } from "agent-env";
import { ${Class} } from "./env.js";

test("an agent's note is there to read, for the agent and for the orchestrator", async () => {
  await using serving = await new ${Class}().serve();
  const client = new EnvironmentClient(serving.url);
  await client.addData([{ kind: "text", text: "from outside" }]);
  await using mcp = await client.mcp();
  await mcp.call("write", { note: "from an agent" });
  const { structuredContent } = await mcp.call("list", {});
  assert.deepEqual(structuredContent, { notes: ["from outside", "from an agent"] });
  assert.equal((await client.getData()).length, 2);
});
`;
}
