import { createHash } from "node:crypto";
import { chmodSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { lockfileDigest } from "./dependencies.mjs";
import { node, nodeEnv } from "./node.mjs";
import { readText, root } from "./places.mjs";

const SOURCE_FOLDERS = ["src", "drivers", "bundles"];
const OUTPUT = /(\.d\.ts|\.js)(\.map)?$/;

const dist = join(root, "dist");
const stamp = join(dist, ".built");
const compilerMemory = join(dist, ".tsbuildinfo");
/** What `mcp.json` names as its schema, made by this source once it is built. */
const schema = join(dist, "mcp.schema.json");
const MAIN = "src/cli/main.ts";
const SCHEMA_SOURCE = "drivers/cua-driver/pin-schema.ts";
const WRITE_SCHEMA = `
  const { writeFileSync } = await import("node:fs");
  const { pinJsonSchema } = await import("./dist/drivers/cua-driver/pin-schema.js");
  writeFileSync("dist/mcp.schema.json", JSON.stringify(pinJsonSchema(), null, 2) + "\\n");
`;

export const buildStep = {
  title: "Build",

  needed() {
    const sources = sourceFiles();
    return readText(stamp) !== fingerprint(sources) || hasMissingOutput(sources);
  },

  async run({ lock }) {
    const sources = sourceFiles();
    const built = fingerprint(sources);
    rmSync(stamp, { force: true });
    // The compiler would take a file that it remembers having written as still there.
    if (hasMissingOutput(sources)) rmSync(compilerMemory, { force: true });
    await run(node, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"], {
      env: nodeEnv,
      lock,
      advice: "Correct what the compiler names, then run the same command again.",
    });
    removeStaleOutputs(sources);
    // An env that depends on this clone runs it by its name.
    if (sources.includes(MAIN)) chmodSync(outputOf(MAIN), 0o755);
    if (sources.includes(SCHEMA_SOURCE)) {
      await run(node, ["--input-type=module", "--eval", WRITE_SCHEMA], { env: nodeEnv, lock });
    }
    writeFileSync(stamp, built);
  },
};

/** Paths of all sources, relative to the clone. */
function sourceFiles() {
  return SOURCE_FOLDERS.flatMap((folder) => filesUnder(folder)).filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".d.ts"),
  );
}

function filesUnder(folder) {
  const path = join(root, folder);
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const inner = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesUnder(inner);
    return entry.isFile() ? [inner] : [];
  });
}

/** Changes whenever a source, the compiler's settings or the dependencies do. Sizes and times are enough, and cheap. */
function fingerprint(sources) {
  const hash = createHash("sha256")
    .update(`${lockfileDigest()}\n`)
    .update(readText(join(root, "tsconfig.json")) ?? "");
  for (const path of sources) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

function outputOf(source) {
  return join(dist, source.replace(/\.ts$/, ".js"));
}

function hasMissingOutput(sources) {
  return (
    sources.some((source) => !existsSync(outputOf(source))) || (sources.includes(SCHEMA_SOURCE) && !existsSync(schema))
  );
}

function removeStaleOutputs(sources) {
  const stems = new Set(sources.map((source) => source.replace(/\.ts$/, "")));
  for (const path of SOURCE_FOLDERS.flatMap((folder) => filesUnder(`dist/${folder}`))) {
    if (OUTPUT.test(path) && !stems.has(path.slice("dist/".length).replace(OUTPUT, ""))) rmSync(join(root, path));
  }
}
