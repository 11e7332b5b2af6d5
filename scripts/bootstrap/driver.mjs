import { existsSync } from "node:fs";
import { join } from "node:path";
import { run } from "./command.mjs";
import { node, nodeEnv } from "./node.mjs";
import { dataFolder, readText, root } from "./places.mjs";
import { Problem } from "./problem.mjs";

/** Fetches and verifies cua-driver, by the command line's own command; `wanted` is false for an env that names another driver. */
export function driverStep(wanted) {
  return {
    title: "cua-driver",

    needed: () => wanted && !isInstalled(join(dataFolder(), "drivers/cua-driver", pinnedVersion())),

    async run({ lock, line }) {
      // It shows a progress bar of its own on a terminal.
      const show = process.stderr.isTTY;
      if (show) line.handOver();
      await run(node, ["dist/src/cli/main.js", "driver", "install", "cua-driver"], {
        env: nodeEnv,
        lock,
        show,
        advice: "Run it by itself to see more: npm run agentenv -- driver install cua-driver",
      });
    },
  };
}

/** One that an older clone installed may lack what is served now. Whether it is all as pinned is seen at the start. */
function isInstalled(folder) {
  return ["cua-driver", "served/refusals.json"].every((path) => existsSync(join(folder, path)));
}

function pinnedVersion() {
  const pin = readText(join(root, "mcp.json"));
  const version = pin === undefined ? undefined : JSON.parse(pin).driver?.version;
  if (typeof version === "string") return version;
  throw new Problem("mcp.json is missing or names no driver version", { advice: "Restore it: git checkout mcp.json" });
}
