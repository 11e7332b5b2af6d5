import { spawnSync } from "node:child_process";
import { SetupError } from "../errors.js";

/** Refuses when a Debian package that an env names in `[apps] packages` isn't installed, with the line that installs it. */
export function requirePackages(packages: readonly string[], source: string): void {
  if (packages.length === 0) return;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own format
  const format = "${Package} ${db:Status-Status}\n";
  const { stdout, error } = spawnSync("dpkg-query", ["-W", "-f", format, "--", ...packages], { encoding: "utf8" });
  // Where there is no dpkg, the names say nothing about what is installed.
  if (error !== undefined) return;
  const installed = new Set(
    stdout.split("\n").flatMap((line) => (line.endsWith(" installed") ? [line.split(" ")[0]] : [])),
  );
  const missing = packages.filter((name) => !installed.has(name));
  if (missing.length === 0) return;
  throw new SetupError(
    `${source}: apps.packages: ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not installed`,
    {
      hint: `${process.getuid?.() === 0 ? "" : "sudo "}apt-get install -y ${missing.join(" ")}`,
    },
  );
}
