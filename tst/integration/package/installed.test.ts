import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EnvironmentClient } from "../../../src/index.js";
import { env, npmInstall, packedPackage, run } from "../../harness/package.js";

let folder: string;
let tarball: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "package-"));
  // A server that is started as root runs as the session user, who has to be able to read it.
  chmodSync(folder, 0o755);
  tarball = await packedPackage(folder);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A folder with nothing in it but files of a user. */
function userFolder(name: string, files: Record<string, string>): string {
  const user = join(folder, name);
  mkdirSync(user);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(user, file), text);
  return user;
}

const USER = `
import {
  AgentEnvError, Environment, EnvironmentClient, extension, forwardMcp, prompt, resource, tool,
  type ExtensionContext, type ForwardedServer, type Serving, type ToolContext,
} from "agent-env";
import { z } from "zod";

export class Mine extends Environment {
  @tool({ description: "Adds.", input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) })
  add({ a, b }: { a: number; b: number }, context: ToolContext) {
    context.progress(1);
    if (a < 0) throw new AgentEnvError("invalid_argument", "a is negative");
    return { sum: a + b };
  }

  @resource("notes://{id}", { listed: "ids" })
  note({ id }: { id: string }) {
    return id;
  }

  ids() {
    return ["notes://1"];
  }

  @extension("urn:agentenv:notes/v1", { op: "get", method: "GET", request: z.strictObject({ id: z.int() }) })
  asked({ id }: { id: number }, { role, signal }: ExtensionContext) {
    signal.throwIfAborted();
    return { id, role };
  }

  // @ts-expect-error: its request says that an id is a number
  @extension("urn:agentenv:notes/v1", { op: "drop", request: z.strictObject({ id: z.int() }) })
  dropped({ id }: { id: string }) {
    return id;
  }

  @prompt({ arguments: z.object({ to: z.string() }) })
  hello({ to }: { to: string }) {
    return \`Hello \${to}\`;
  }
}

export class Behind extends Environment {
  readonly behind: ForwardedServer[] = [forwardMcp({ url: "http://127.0.0.1:1/mcp" })];
  override forwardedServers() {
    return this.behind;
  }
}

const serving: Serving = await new Mine().serve();
const client = new EnvironmentClient(serving.url, { role: "reader" });
console.log(JSON.stringify(await client.invoke("urn:agentenv:notes/v1", { id: 7 }, { op: "get" })));
const mcp = await client.mcp();
const { structuredContent } = await mcp.call("add", { a: 1, b: 2 });
console.log((await client.card()).name, JSON.stringify(structuredContent));
await mcp.close();
await serving.close();
`;

const compilerOptions = { target: "ES2022", module: "NodeNext", strict: true, skipLibCheck: false, types: ["node"] };

describe("the package, installed in an empty folder", { timeout: 300_000 }, () => {
  it("has types that compile under strict for TypeScript 5.9 and 7, its libraries checked too, and it runs", async () => {
    const user = userFolder("user", {
      "package.json": JSON.stringify({ private: true, type: "module" }),
      "tsconfig.json": JSON.stringify({ compilerOptions: { ...compilerOptions, outDir: "out" }, include: ["*.ts"] }),
      "mine.ts": USER,
    });
    const compilers = ["ts59@npm:typescript@5.9.3", "ts7@npm:typescript@7.0.2"];
    await npmInstall(user, tarball, "zod", "@types/node@24", ...compilers);
    for (const compiler of ["ts59", "ts7"]) {
      const { stdout } = await run(process.execPath, [join("node_modules", compiler, "bin/tsc")], { cwd: user, env });
      expect(stdout).toBe("");
    }
    const { stdout } = await run(process.execPath, ["out/mine.js"], { cwd: user, env, timeout: 30_000 });
    expect(stdout).toBe('{"id":7,"role":"reader"}\nMine {"sum":3}\n');
  });

  it("writes a new env that is typed, passes its test and starts", async () => {
    const user = userFolder("start", { "package.json": JSON.stringify({ private: true }) });
    await npmInstall(user, tarball);
    const dist = join(user, "node_modules/agent-env/dist/src/cli");
    const script = `import { initCommand } from ${JSON.stringify(join(dist, "init.js"))};
      await initCommand.parseAsync(process.argv.slice(1), { from: "user" });`;
    const init = (...args: string[]) =>
      run(process.execPath, ["--input-type=module", "-e", script, ...args], {
        cwd: user,
        env: { ...env, INIT_CWD: user },
      });
    await init("my-notes", "--package", `file:${tarball}`);
    const made = join(user, "my-notes");
    await npmInstall(made);
    const { stdout } = await run("npm", ["test"], { cwd: made, env, timeout: 60_000 });
    expect(stdout).toMatch(/pass 1\n/);
    await expect(init("my-notes")).rejects.toMatchObject({ stderr: expect.stringContaining("is not empty") });
    // As somebody who is not root, who gets a Node of its own, wherever ours lies.
    const home = join(folder, "home");
    mkdirSync(home);
    cpSync(realpathSync(process.execPath), join(folder, "node"));
    const someone = process.getuid?.() === 0 ? { uid: 1, gid: 1 } : undefined;
    if (someone !== undefined) chownSync(home, someone.uid, someone.gid);
    const main = join("node_modules/agent-env/dist/src/cli/main.js");
    const child = spawn(join(folder, "node"), [main, "up", ".", "--port", "0", "--json"], {
      cwd: made,
      env: { PATH: env.PATH, HOME: home, XDG_RUNTIME_DIR: home, XDG_DATA_HOME: home },
      stdio: ["ignore", "pipe", "inherit"],
      ...someone,
    });
    try {
      const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      const { url } = JSON.parse(line) as { url: string };
      expect((await new EnvironmentClient(url).card()).name).toBe("my-notes");
    } finally {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  });
});
