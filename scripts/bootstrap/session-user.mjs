import { spawnSync } from "node:child_process";
import { run } from "./command.mjs";
import { nodeEnv } from "./node.mjs";
import { isRoot, readText } from "./places.mjs";

/** The session user where root names none: server, computer and agents' programs run as it, never as root. */
const DEFAULT_USER = "agent";

export function sessionUserStep(named) {
  return {
    title: `Session user ${DEFAULT_USER}`,

    needed: () => isRoot && named === undefined && !exists(DEFAULT_USER),

    async run() {
      await run("useradd", ["--create-home", "--shell", "/bin/bash", DEFAULT_USER], {
        env: nodeEnv,
        advice: "Name a user that exists with --user NAME, or `user` in env.toml.",
      });
      return `Made the user ${DEFAULT_USER}: the computer runs as it, since nothing that an agent reaches may run as root.`;
    },
  };
}

function exists(name) {
  if (new RegExp(`^${name}:`, "m").test(readText("/etc/passwd") ?? "")) return true;
  return spawnSync("getent", ["passwd", name], { stdio: "ignore" }).status === 0;
}
