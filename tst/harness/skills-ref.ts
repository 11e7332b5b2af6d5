import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pythonTool } from "./python-tool.js";

/** What the reference validator of Agent Skills says of a folder. Throws where it refuses it. */
export function validateSkill(folder: string): string {
  const python = join(pythonTool("skills-ref", "0.1.1"), "bin", "python");
  const run = "from skills_ref.cli import main; main()";
  return execFileSync(python, ["-c", run, "validate", folder]).toString();
}
