import { Environment, type ForwardedServer, type ForwardMcpOptions, forwardMcp } from "../../src/index.js";

/** An environment that forwards a server and has nothing of its own. */
export class ForwardingEnv extends Environment {
  readonly behind: ForwardedServer[];

  constructor(...servers: ForwardMcpOptions[]) {
    super();
    this.behind = servers.map(forwardMcp);
  }

  override forwardedServers(): ForwardedServer[] {
    return this.behind;
  }
}
