import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { SetupError } from "../errors.js";

/** `$AGENTENV_DATA`, else `/var/lib/agentenv` as root, else below XDG_DATA_HOME. */
export function dataFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const named = environment.AGENTENV_DATA;
  if (named) {
    if (!isAbsolute(named)) {
      throw new SetupError(`AGENTENV_DATA is ${JSON.stringify(named)}, not an absolute path`, {
        hint: "name the data folder by its whole path, such as /var/lib/agentenv",
      });
    }
    return named;
  }
  if (process.getuid?.() === 0) return "/var/lib/agentenv";
  return join(environment.XDG_DATA_HOME || join(homedir(), ".local", "share"), "agentenv");
}
