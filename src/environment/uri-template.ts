import { SetupError } from "../errors.js";

/** One place of a template's pattern: a character, or one of those that a part may hold, once or any number of times. */
type Token = string | { readonly one: RegExp; readonly many: boolean };

const SEGMENT = /[^/?#&]/;
const ANY = /[\s\S]/;

/**
 * A URI template of RFC 6570's first level and `{+part}`: `{part}` stands for text without `/`, `?`, `#` and `&`,
 * percent-encoded; `{+part}` for any text as it is. Neither is empty.
 */
export class UriTemplate {
  readonly parts: readonly string[];
  readonly #pattern: RegExp;
  readonly #raw: ReadonlySet<string>;
  readonly #tokens: readonly Token[];

  /** Throws a SetupError for another kind of expression, a part that is named twice, or a template without parts. */
  constructor(readonly template: string) {
    const parts: string[] = [];
    const raw = new Set<string>();
    const tokens: Token[] = [];
    let pattern = "";
    for (const piece of template.split(/(\{[^}]*\})/)) {
      const [, plus, name] = /^\{(\+?)([A-Za-z_][\w.]*)\}$/.exec(piece) ?? [];
      if (name === undefined) {
        if (/[{}]/.test(piece)) {
          throw new SetupError(`the URI template ${JSON.stringify(template)} can't be served: ${piece}`, {
            hint: "write {name}, or {+name} for text with slashes",
          });
        }
        pattern += piece.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
        tokens.push(...piece);
        continue;
      }
      if (parts.includes(name))
        throw new SetupError(`the URI template ${JSON.stringify(template)} names ${name} twice`);
      parts.push(name);
      if (plus === "+") raw.add(name);
      const part = plus === "+" ? ANY : SEGMENT;
      pattern += `(${part.source}+?)`;
      tokens.push({ one: part, many: false }, { one: part, many: true });
    }
    if (parts.length === 0) throw new SetupError(`the URI template ${JSON.stringify(template)} has no part`);
    this.parts = parts;
    this.#raw = raw;
    this.#tokens = tokens;
    this.#pattern = new RegExp(`^${pattern}$`);
  }

  /** The parts of a URI that the template stands for, decoded; undefined for one that it doesn't. */
  match(uri: string): Record<string, string> | undefined {
    const found = this.#pattern.exec(uri);
    if (found === null) return undefined;
    try {
      return Object.fromEntries(
        this.parts.map((name, index) => {
          const value = found[index + 1] ?? "";
          return [name, this.#raw.has(name) ? value : decodeURIComponent(value)];
        }),
      );
    } catch {
      return undefined;
    }
  }

  /** The URI with the parts' values in it. */
  expand(parts: Readonly<Record<string, string>>): string {
    return this.template.replaceAll(/\{(\+?)([^}]*)\}/g, (_expression, plus: string, name: string) =>
      plus === "+" ? (parts[name] ?? "") : encodeURIComponent(parts[name] ?? ""),
    );
  }

  /** Whether some URI is one of both templates. */
  overlaps(other: UriTemplate): boolean {
    return intersect(this.#tokens, other.#tokens);
  }
}

/** Whether two patterns have a text in common, tried from every pair of places once. */
function intersect(a: readonly Token[], b: readonly Token[]): boolean {
  const seen = new Set<number>();
  const from = (i: number, j: number): boolean => {
    const key = i * (b.length + 1) + j;
    if (seen.has(key)) return false;
    seen.add(key);
    const [x, y] = [a[i], b[j]];
    if (x === undefined && y === undefined) return true;
    if (isMany(x) && from(i + 1, j)) return true;
    if (isMany(y) && from(i, j + 1)) return true;
    return x !== undefined && y !== undefined && goTogether(x, y) && from(isMany(x) ? i : i + 1, isMany(y) ? j : j + 1);
  };
  return from(0, 0);
}

function isMany(token: Token | undefined): boolean {
  return typeof token === "object" && token.many;
}

function goTogether(x: Token, y: Token): boolean {
  if (typeof x === "string") return typeof y === "string" ? x === y : y.one.test(x);
  return typeof y === "string" ? x.one.test(y) : true;
}
