import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { AgentEnvError } from "../errors.js";

/** How long a connection may take. */
const CONNECT_MS = 30_000;

let shared: Agent | undefined;

/** Connections to https servers on public addresses, and to nothing else, redirects included. */
export function publicInternet(): Agent {
  shared ??= new Agent({ connect: publicConnector() });
  return shared;
}

let sharedAny: Agent | undefined;

/** Connections to https servers on any address. */
export function anyHttps(): Agent {
  sharedAny ??= new Agent({ connect: httpsConnector() });
  return sharedAny;
}

function httpsConnector(): buildConnector.connector {
  const connect = buildConnector({ timeout: CONNECT_MS });
  return (options, callback) => {
    if (options.protocol !== "https:") callback(notHttps(), null);
    else connect(options, callback);
  };
}

export function publicConnector(): buildConnector.connector {
  const connect = buildConnector({ timeout: CONNECT_MS, lookup: publicLookup });
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    const refused =
      options.protocol !== "https:" ? notHttps() : isIP(host) !== 0 && isPrivate(host) ? notPublic() : undefined;
    if (refused !== undefined) callback(refused, null);
    else connect(options, callback);
  };
}

/** Looks a name up and refuses it where any of its addresses is private, so that no later pick can be one. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, "", 0);
    if (addresses.some(({ address }) => isPrivate(address))) return callback(notPublic(), "", 0);
    const [first] = addresses;
    if (options.all === true || first === undefined) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

const notPublic = () => new AgentEnvError("invalid_argument", "the file's uri leads to a private address");
const notHttps = () => new AgentEnvError("invalid_argument", "the file's uri leads to something else than https");

/** What is not the public internet. Source: IANA's special-purpose address registries. */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 127],
  ["64:ff9b::", 32],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 9],
  ["ff00::", 8],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv6");
}

export function isPrivate(address: string): boolean {
  return PRIVATE.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
