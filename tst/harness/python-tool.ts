import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/package-root.js";

/**
 * A Python package in a virtual environment of its own, below `.agentenv/tools`, installed the first time it is asked for.
 * Answers the environment's folder. Test files that ask at the same time each make one, and the first is kept.
 */
export function pythonTool(name: string, version: string): string {
  const tools = join(packageRoot, ".agentenv", "tools");
  const folder = join(tools, `${name}-${version}`);
  if (existsSync(folder)) return folder;
  console.error(`installing ${name} ${version} from PyPI for the tests, once`);
  mkdirSync(tools, { recursive: true });
  const fresh = `${folder}.${process.pid}`;
  try {
    run("python3", ["-m", "venv", fresh]);
    run(join(fresh, "bin", "python"), [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      `${name}==${version}`,
    ]);
    renameSync(fresh, folder);
  } catch (thrown) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw thrown;
  }
  return folder;
}

function run(command: string, args: readonly string[]): void {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", timeout: 170_000 });
  if (status === 0) return;
  throw new Error(
    `${command} ${args.join(" ")} failed (${error?.message ?? `exit code ${status}`}):\n${stdout}${stderr}`,
  );
}
