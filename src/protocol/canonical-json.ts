/**
 * The one text of a JSON value, for digests: keys sorted by UTF-16 code units, no space, numbers and strings as
 * ECMAScript writes them. Throws a TypeError for what JSON can't hold (NaN, Infinity, undefined, a lone surrogate).
 * Source: RFC 8785.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON number`);
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "string":
      if (!value.isWellFormed()) throw new TypeError("a string with a lone surrogate has no canonical form");
      return JSON.stringify(value);
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${Array.from(value, canonicalJson).join(",")}]`;
      return `{${Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, member]) => `${canonicalJson(key)}:${canonicalJson(member)}`)
        .join(",")}}`;
    default:
      throw new TypeError(`${typeof value} is no JSON value`);
  }
}
