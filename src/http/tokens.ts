import { createHash, timingSafeEqual } from "node:crypto";
import { SetupError } from "../errors.js";

/** What a bearer of a token may reach: `agent` MCP alone, `framework` everything. */
export type TokenScope = "agent" | "framework";

/** A token as one process hands it to another. */
export interface TokenHash {
  readonly scope: TokenScope;
  readonly sha256: string;
}

/**
 * The bearer tokens that the server takes. Only their hashes are kept: agents' programs run as the same user, and a token
 * must not be readable where they could read it.
 */
export class Tokens {
  readonly #hashes: { scope: TokenScope; hash: Buffer }[];

  private constructor(entries: { scope: TokenScope; hash: Buffer }[]) {
    this.#hashes = entries;
  }

  /** The same tokens from what `toJSON` gave: their hashes, never the tokens. */
  static fromJSON(entries: readonly TokenHash[]): Tokens {
    return new Tokens(entries.map(({ scope, sha256 }) => ({ scope, hash: Buffer.from(sha256, "hex") })));
  }

  toJSON(): TokenHash[] {
    return this.#hashes.map(({ scope, hash }) => ({ scope, sha256: hash.toString("hex") }));
  }

  /** Reads `scope:token` lines. Blank lines and lines that begin with # are passed over. */
  static parse(text: string, source: string): Tokens {
    const entries: { scope: TokenScope; hash: Buffer }[] = [];
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      if (line.trim() === "" || line.startsWith("#")) continue;
      const [, scope, token] = /^(agent|framework):(\S{16,})\s*$/.exec(line) ?? [];
      if (scope === undefined || token === undefined) {
        throw new SetupError(`${source}, line ${index + 1}: not a token line`, {
          hint: "write one `agent:TOKEN` or `framework:TOKEN` a line, TOKEN of at least 16 characters without spaces",
        });
      }
      entries.push({ scope: scope as TokenScope, hash: digest(token) });
    }
    if (entries.length === 0) {
      throw new SetupError(`${source} holds no token`, { hint: "write one `agent:TOKEN` or `framework:TOKEN` a line" });
    }
    return new Tokens(entries);
  }

  /** The scope that an Authorization header's bearer token has, undefined for none. Takes the same time for any token. */
  scopeOf(authorization: string | undefined): TokenScope | undefined {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    const hash = digest(token);
    let found: TokenScope | undefined;
    for (const entry of this.#hashes) if (timingSafeEqual(entry.hash, hash)) found = entry.scope;
    return found;
  }
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
