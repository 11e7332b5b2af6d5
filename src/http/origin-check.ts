import { isIP } from "node:net";

/**
 * Keeps a web page that a person has open from reaching the server. By Host: a name that resolves to this machine (DNS
 * rebinding) has to be a known one; an address can't be rebound, so any address will do. By Origin: a page has to come from
 * this very server, or from a host that is allowed by name, whatever its port; another server's page may not call this one,
 * on an address or on another port of this machine either.
 */
export class OriginCheck {
  readonly #allowed: Set<string>;
  /** The last Host header that was let through: most clients send but one. */
  #known: string | undefined;

  constructor(allowedHosts: readonly string[] = []) {
    this.#allowed = new Set(allowedHosts.map((name) => name.toLowerCase()));
  }

  /** Why the request is refused, undefined for one that is let through. */
  refusal(host: string | undefined, origin: string | undefined): string | undefined {
    if (origin === undefined && host !== undefined && host === this.#known) return undefined;
    const name = hostName(host ?? "");
    if (name === "" || !(name === "localhost" || isIP(name) !== 0 || this.#allowed.has(name))) {
      return `the Host header ${JSON.stringify((host ?? "").slice(0, 200))} is not a name of this server`;
    }
    if (origin !== undefined && !this.#isOwn(origin, host ?? "")) {
      return `a page of the Origin ${JSON.stringify(origin.slice(0, 200))} may not call this server`;
    }
    this.#known = host;
    return undefined;
  }

  #isOwn(origin: string, host: string): boolean {
    if (!URL.canParse(origin)) return false;
    const url = new URL(origin);
    return url.host === host.toLowerCase() || this.#allowed.has(hostName(url.hostname));
  }
}

/** The name in a Host header, without its port and an IPv6 address's brackets. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d+$/, "")).toLowerCase();
}
