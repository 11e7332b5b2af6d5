import { spawn } from "node:child_process";
import { join } from "node:path";
import { run } from "./command.mjs";
import { nodeEnv } from "./node.mjs";
import { isRoot, readJson, root } from "./places.mjs";
import { Problem } from "./problem.mjs";

const groups = readJson(join(root, "scripts/packages.json"));
const APT_OPTIONS = ["-y", "-o", "DPkg::Lock::Timeout=600", "-o", "APT::Status-Fd=4", "-o", "Acquire::Retries=3"];

// biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders
const FORMAT = "--showformat=${Package} ${db:Status-Abbrev}\n";

/** Debian's packages of the named groups of `packages.json`. */
export function packagesStep(names) {
  const wanted = [...new Set(names.flatMap((name) => groups[name]))];
  return {
    title: "Debian packages",

    needed: async () => (await missingOf(wanted)).length > 0,

    async run({ line }) {
      const missing = await missingOf(wanted);
      const install = ["install", "--no-install-recommends", ...missing];
      if (!isRoot) {
        throw new Problem(`Debian packages are missing: ${missing.join(" ")}`, {
          advice: `Run this line once, then the same command again:\n  sudo apt-get update && sudo apt-get -y ${install.join(" ")}`,
        });
      }
      const env = { ...nodeEnv, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
      const onStatus = (text) => line.detail(statusText(text));
      const advice = `Try the line by hand: apt-get update && apt-get -y ${install.join(" ")}`;
      // A set-up that was killed may have left packages half configured, and then apt refuses everything.
      await run("dpkg", ["--configure", "-a"], { env, advice });
      line.detail("apt-get update");
      await run("apt-get", [...APT_OPTIONS, "update"], { env, advice, onStatus });
      await run("apt-get", [...APT_OPTIONS, ...install], { env, advice, onStatus });
    },
  };
}

/** Those that dpkg doesn't have installed and configured. Where there is no dpkg, nothing can be said and nothing is missing. */
function missingOf(wanted) {
  return new Promise((settle, fail) => {
    const query = spawn("dpkg-query", ["--show", FORMAT, ...wanted], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    });
    let text = "";
    query.stdout.setEncoding("utf8");
    query.stdout.on("data", (chunk) => {
      text += chunk;
    });
    query.once("error", (error) => (error.code === "ENOENT" ? settle([]) : fail(error)));
    // It exits with 1 when it doesn't know one of them, and lists the others all the same.
    query.once("close", () => {
      const installed = new Set();
      for (const row of text.split("\n")) {
        const [name, status] = row.split(" ");
        if (status?.[1] === "i") installed.add(name);
      }
      settle(wanted.filter((name) => !installed.has(name)));
    });
  });
}

/** apt's status lines: `dlstatus:…:percent:text` while it downloads, `pmstatus:package:percent:text` while it installs. */
function statusText(status) {
  const [kind, , percent, ...text] = status.split(":");
  if (kind !== "dlstatus" && kind !== "pmstatus") return "";
  return `${Math.round(Number(percent))} %  ${text.join(":").trim()}`;
}
