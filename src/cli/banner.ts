import { ComputerDriver } from "../computer/driver.js";
import type { Desktop } from "../desktop/desktop.js";
import type { ServerSide } from "../desktop/server-side.js";
import type { Application } from "../environment/application.js";
import type { Environment } from "../environment/environment.js";
import { CARD_PATH, MCP_PATH } from "../protocol/card.js";
import { shellWord } from "../shell-word.js";
import { print, printJson, styled, table } from "./output.js";
import type { StartPlan } from "./start-plan.js";

interface Shown {
  side: ServerSide;
  plan: StartPlan;
  port: number;
  environment: Environment;
  application: Application;
  desktop: Desktop | undefined;
}

/** Says that the environment can be used, and how. */
export function showReady({ side, plan, port, environment, application, desktop }: Shown): void {
  const host = plan.host === "0.0.0.0" || plan.host === "::" ? "127.0.0.1" : plan.host;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const socket = environment instanceof ComputerDriver ? environment.socketPath : undefined;
  if (plan.json) {
    printJson({
      pid: side.hostPid,
      url,
      mcp: `${url}${MCP_PATH}`,
      ...(desktop === undefined ? {} : { display: desktop.session.display }),
      ...(socket === undefined ? {} : { socket }),
      dataDir: plan.dataDir,
      runDir: side.runtimeDir,
    });
    return;
  }
  const header = plan.tokens === undefined ? "" : ' --header "Authorization: Bearer TOKEN"';
  const client = `claude mcp add --transport http ${shellWord(application.name)} ${url}${MCP_PATH}${header}`;
  print(
    `\n${styled("bold", `${application.name} is ready`)}\n${table([
      ["  card", `${url}${CARD_PATH}`],
      ["  MCP", `${url}${MCP_PATH}`],
      ...(desktop === undefined
        ? []
        : [
            ["  display", `${desktop.session.display}, as the user ${desktop.session.user.name}`],
            ["  driver", `${plan.file.driver} ${environment.environmentVersion}`],
          ]),
      ["  connect", client],
      ...(desktop === undefined ? [] : [["  look", `${plan.commandLine} shot ${url} --out desk.png`]]),
      ["  stop", "Ctrl-C"],
    ])}\n`,
  );
}
