import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./command.mjs";
import { ownFolder, readJson, root } from "./places.mjs";
import { Problem } from "./problem.mjs";

const pin = readJson(join(root, "scripts/node.json"));
const nodesFolder = join(ownFolder, "node");
const broughtFolder = join(nodesFolder, pin.version);
const PARTIAL = "partial-";

/** The Node that runs everything after the bootstrap: the machine's own where it is new enough, else the one that is brought. */
export const node = isNewEnough(process.versions.node) ? process.execPath : join(broughtFolder, "bin/node");

/** Where `run.sh` finds it. */
const link = join(ownFolder, "bin/node");

/** The environment in which that Node comes first on PATH, and root's programs are found too. */
export const nodeEnv = {
  ...process.env,
  PATH: [dirname(node), process.env.PATH, "/usr/sbin", "/sbin"].filter(Boolean).join(":"),
};

export const nodeStep = {
  title: node === process.execPath ? `Node ${process.versions.node}` : `Node ${pin.version}`,

  needed: () => !existsSync(node) || linkTarget() !== node,

  async run({ lock, line }) {
    mkdirSync(nodesFolder, { recursive: true });
    for (const name of readdirSync(nodesFolder)) {
      if (name.startsWith(PARTIAL)) rmSync(join(nodesFolder, name), { recursive: true, force: true });
    }
    if (!existsSync(node)) await bring(lock, line);
    pointTo(node);
  },
};

/** Fetches the npm package that is the Node executable, through npm as it is set up here, and moves it in place whole. */
async function bring(lock, line) {
  const name = `node-linux-${process.arch}`;
  const integrity = pin.integrity[process.arch];
  if (!integrity || process.platform !== "linux") {
    throw new Problem(
      `Node ${process.versions.node} is too old: ${pin.minimum} is needed, and none can be brought for ${process.platform} ${process.arch}`,
      { advice: `Install Node ${pin.minimum} or newer, put it first on PATH, and run the same command again.` },
    );
  }
  const partial = mkdtempSync(join(nodesFolder, PARTIAL));
  const advice = `Check npm's registry (npm config get registry), or put Node ${pin.minimum} or newer first on PATH; then run the same command again.`;
  line.detail(`${name}, about 50 MB`);
  await run("npm", ["pack", `${name}@${pin.version}`, "--pack-destination", partial], { lock, advice });

  const archive = join(partial, `${name}-${pin.version}.tgz`);
  const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (found !== integrity) {
    throw new Problem(`${name}@${pin.version} is not what scripts/node.json pins`, {
      tail: [`pinned   ${integrity}`, `received ${found}`],
      advice: "What the registry served was thrown away. Ask who runs the registry that npm is set up with.",
    });
  }
  line.detail("unpacking");
  await run(
    "tar",
    ["--extract", "--gzip", "--no-same-owner", "--file", archive, "--directory", partial, "--strip-components=1"],
    {
      lock,
    },
  );
  await run(join(partial, "bin/node"), ["--version"], {
    lock,
    advice: `The Node that was brought doesn't run on this machine. Put Node ${pin.minimum} or newer first on PATH.`,
  });
  rmSync(archive);
  // Whoever may read the clone may run its Node.
  chmodSync(partial, 0o755);
  rmSync(broughtFolder, { recursive: true, force: true });
  renameSync(partial, broughtFolder);
}

function linkTarget() {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

function pointTo(target) {
  mkdirSync(dirname(link), { recursive: true });
  const next = `${link}.${process.pid}`;
  rmSync(next, { force: true });
  symlinkSync(target, next);
  renameSync(next, link);
}

function isNewEnough(version) {
  const wanted = pin.minimum.split(".").map(Number);
  const has = version.split(".").map(Number);
  for (const [index, part] of wanted.entries()) {
    if (has[index] !== part) return has[index] > part;
  }
  return true;
}
