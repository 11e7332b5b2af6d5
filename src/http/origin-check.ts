import { isIP } from "node:net";

/**
 * Keeps a web page that a person has open from reaching the server through a name that resolves to this machine (DNS
 * rebinding). A name has to be known; an address can't be rebound, so any address will do.
 */
export class OriginCheck {
  readonly #names: Set<string>;

  constructor(allowedHosts: readonly string[] = []) {
    this.#names = new Set(["localhost", ...allowedHosts.map((name) => name.toLowerCase())]);
  }

  /** Why the request is refused, undefined for one that is let through. */
  refusal(host: string | undefined, origin: string | undefined): string | undefined {
    if (host === undefined || !this.#known(hostName(host))) {
      return `the Host header ${JSON.stringify(host ?? "")} is not a name of this server`;
    }
    if (origin !== undefined && !this.#known(originName(origin))) {
      return `the Origin ${JSON.stringify(origin)} may not call this server`;
    }
    return undefined;
  }

  #known(name: string | undefined): boolean {
    return name !== undefined && (this.#names.has(name) || isIP(name) !== 0);
  }
}

/** The name in a Host header, without its port and an IPv6 address's brackets. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d+$/, "")).toLowerCase();
}

function originName(origin: string): string | undefined {
  return URL.canParse(origin) ? hostName(new URL(origin).hostname) : undefined;
}
