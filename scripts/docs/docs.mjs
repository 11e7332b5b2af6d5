// Makes the API reference of the public surface: node scripts/docs/docs.mjs. Needs the build.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const out = join(root, ".agentenv/docs");

function run(program, ...args) {
  const { status } = spawnSync(process.execPath, [join(root, "node_modules/@microsoft", program), ...args], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

run("api-extractor/bin/api-extractor", "run", "--local", "--config", join(here, "api-extractor.json"));
run("api-documenter/bin/api-documenter", "markdown", "--input-folder", out, "--output-folder", join(out, "api"));
process.stdout.write(`the API reference is ${join(out, "api/index.md")}\n`);
