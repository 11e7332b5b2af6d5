import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../../src/package-root.js";

export const run = promisify(execFile);
/** With the Node of the tests first on PATH. */
export const env = { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env.PATH}` };

/** What `npm pack` makes of this package as it is now, below `folder`. */
export async function packedPackage(folder: string): Promise<string> {
  const source = join(folder, "package");
  mkdirSync(source);
  for (const each of ["package.json", "bundles", "skills", "mcp.json", "README.md", "LICENSE"]) {
    cpSync(join(packageRoot, each), join(source, each), { recursive: true });
  }
  const tsc = join(packageRoot, "node_modules/typescript/bin/tsc");
  const build = ["-p", join(packageRoot, "tsconfig.json"), "--incremental", "false", "--outDir", join(source, "dist")];
  await run(process.execPath, [tsc, ...build], { env });
  await run("npm", ["pack", "--ignore-scripts"], { cwd: source, env });
  return join(source, readdirSync(source).find((name) => name.endsWith(".tgz")) ?? "");
}

export const npmInstall = (cwd: string, ...packages: string[]) =>
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], { cwd, env, timeout: 180_000 });
