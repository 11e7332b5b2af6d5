/** Starts a computer as `agentenv up` does, by the build: `node computer-start.ts OPTIONS`, the options of a `Start` as JSON. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

export interface Start {
  user?: string;
  runtimeDir: string;
  dataDir: string;
  isolation?: "pid" | "user" | "none";
  computer: Computer;
}

/** What the fake server makes. */
export interface Computer {
  display?: string;
  width?: number;
  height?: number;
  apps?: string[];
  /** Shell lines that are started when the desktop is up, as what an agent starts. */
  launches?: string[];
  /** It never closes anything when it is told to stop. */
  stubborn?: boolean;
  secret?: string;
}

/** Beside the clone's build, or, where this file was copied for the session user, beside the copy of the build. */
export function built(file: string): string {
  const candidates = ["../../node_modules/agent-env/dist/", "../../dist/"];
  const build = candidates.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  return new URL(`src/desktop/${file}`, build).href;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { enterSession } = (await import(built("enter.js"))) as typeof import("../../src/desktop/enter.js");
  const { user, computer, ...options } = JSON.parse(process.argv[2] ?? "") as Start;
  const server = fileURLToPath(new URL("computer-server.ts", import.meta.url));
  try {
    enterSession({
      ...options,
      user,
      server,
      folders: [dirname(server)],
      payload: () => computer,
    });
  } catch (thrown) {
    const { message, hint } = thrown as { message: string; hint?: string };
    console.error(hint === undefined ? message : `${message}\n${hint}`);
    process.exit(1);
  }
}
