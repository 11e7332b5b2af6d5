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

/** Debian's packages of the named groups of `packages.json`. Where there is no dpkg, nothing can be said and nothing is missing. */
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
      const apt = (args) => run("apt-get", [...APT_OPTIONS, ...args], { env, advice, onStatus });
      line.detail("apt-get update");
      // Another apt may be at the same lists, as on a machine that has just booted; then they are as good.
      const outdated = await apt(["update"]).catch((problem) => problem);
      try {
        await apt(install);
      } catch {
        if (outdated instanceof Problem) throw outdated;
        await mend(apt, env);
        await apt(install);
      }
    },
  };
}

/**
 * A set-up that was killed may have left packages that apt can't get past: half configured ones, which dpkg finishes, and
 * half unpacked ones, which have to be unpacked anew.
 */
async function mend(apt, env) {
  await run("dpkg", ["--configure", "-a"], { env }).catch(() => {});
  const broken = (await dpkgRows([])).filter(([, status]) => status?.[2] === "R").map(([name]) => name);
  if (broken.length > 0) await apt(["install", "--no-install-recommends", "--reinstall", ...broken]);
}

/** Those that dpkg doesn't have installed and configured. */
async function missingOf(wanted) {
  const rows = await dpkgRows(wanted);
  if (rows === undefined) return [];
  const installed = new Set(rows.filter(([, status]) => status?.[1] === "i").map(([name]) => name));
  return wanted.filter((name) => !installed.has(name));
}

/** Name and status of each of these packages that dpkg knows, of all for none; undefined where there is no dpkg. */
function dpkgRows(names) {
  return new Promise((settle, fail) => {
    const query = spawn("dpkg-query", ["--show", FORMAT, ...names], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    });
    let text = "";
    query.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    query.once("error", (error) => (error.code === "ENOENT" ? settle(undefined) : fail(error)));
    // It exits with 1 when it doesn't know one of them, and lists the others all the same.
    query.once("close", () => settle(text.split("\n").map((row) => row.split(" "))));
  });
}

/** apt's status lines: `dlstatus:…:percent:text` while it downloads, `pmstatus:package:percent:text` while it installs. */
function statusText(status) {
  const [kind, , percent, ...text] = status.split(":");
  if (kind !== "dlstatus" && kind !== "pmstatus") return "";
  return `${Math.round(Number(percent))} %  ${text.join(":").trim()}`;
}
