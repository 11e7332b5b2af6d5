import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { nodeEnv } from "./node.mjs";
import { readText, root } from "./places.mjs";

/** Inside node_modules, so that it goes when they go, and `npm ci` empties both. */
const stamp = join(root, "node_modules/.agentenv-installed");

/** What `npm ci` would install: the lockfile, for this platform. */
export function lockfileDigest() {
  const lockfile = readFileSync(join(root, "package-lock.json"));
  return createHash("sha256").update(`${process.platform} ${process.arch}\n`).update(lockfile).digest("hex");
}

export const dependenciesStep = {
  title: "npm packages",

  needed: () => readText(stamp) !== lockfileDigest(),

  async run({ lock, line }) {
    const digest = lockfileDigest();
    // Development dependencies too, whatever NODE_ENV says: the compiler is one of them.
    await run("npm", ["ci", "--include=dev", "--no-audit", "--no-fund"], {
      env: nodeEnv,
      lock,
      onLine: (text) => line.detail(text),
      advice: "Check npm's registry (npm config get registry), then run the same command again.",
    });
    writeFileSync(stamp, digest);
  },
};
