/** Where a value lies in a JSON text: from its first character to behind its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Where the values of an object's members lie in its JSON text, by name; of a name that comes twice the last, as JSON.parse
 * takes it. So a value can be taken out or put in as text, and its numbers, keys and their order stay as they were written.
 * `text` is known to be valid JSON; undefined where it is no object.
 */
export function membersOf(text: string, start = 0): Map<string, Span> | undefined {
  const members = new Map<string, Span>();
  return walkMembers(text, start, (name, span) => members.set(name, span)) ? members : undefined;
}

/**
 * Whether an object's text has several members that some reader could take for the one of this name: the same name again, of
 * which one reader takes the first and another the last, or one that differs by case alone.
 */
export function isAmbiguous(text: string, name: string): boolean {
  let found = 0;
  walkMembers(text, 0, (each) => {
    if (each.length === name.length && each.toLowerCase() === name) found += 1;
  });
  return found > 1;
}

/** Calls `visit` with each member of the object that begins at `start`; false where it is no object. */
function walkMembers(text: string, start: number, visit: (name: string, span: Span) => void): boolean {
  let at = skipSpace(text, start);
  if (text[at] !== "{") return false;
  at = skipSpace(text, at + 1);
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at);
    const written = text.slice(at + 1, nameEnd - 1);
    const name = written.includes("\\") ? (JSON.parse(`"${written}"`) as string) : written;
    // Behind the name come a colon and the value, either of which may have space before it.
    const from = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = endOfValue(text, from);
    visit(name, { start: from, end });
    at = skipSpace(text, end);
    if (text[at] !== ",") break;
    at = skipSpace(text, at + 1);
  }
  return true;
}

/** Where the elements of an array lie in its JSON text; undefined where it is no array. */
export function elementsOf(text: string, start = 0): Span[] | undefined {
  let at = skipSpace(text, start);
  if (text[at] !== "[") return undefined;
  const elements: Span[] = [];
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== "]") {
    const end = endOfValue(text, at);
    elements.push({ start: at, end });
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return elements;
}

/** The text of one member of an object, undefined where there is none. */
export function memberText(text: string, name: string): string | undefined {
  const span = membersOf(text)?.get(name);
  return span === undefined ? undefined : text.slice(span.start, span.end);
}

/** An object's text with a member replaced, or added behind the others. */
export function withMember(text: string, name: string, value: string): string {
  const members = membersOf(text);
  if (members === undefined) throw new TypeError("the JSON text is no object");
  const span = members.get(name);
  if (span !== undefined) return text.slice(0, span.start) + value + text.slice(span.end);
  const close = text.lastIndexOf("}");
  return `${text.slice(0, close)}${members.size > 0 ? "," : ""}${JSON.stringify(name)}:${value}${text.slice(close)}`;
}

/** ECMAScript's "JSON.parse source text access", which current engines have and the compiler's library doesn't know. */
const exact = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};

/** JSON.parse, but that JSON.stringify writes each number of the value as it was written, whatever a double makes of it. */
export function parseExact(text: string): unknown {
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== JSON.stringify(value)
      ? exact.rawJSON(source)
      : value,
  );
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return endOfScalar(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at) - 1;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth += 1;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        depth -= 1;
        if (depth === 0) return at + 1;
        break;
    }
  }
  return text.length;
}

function endOfScalar(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT || isSpace(code)) return at;
  }
  return text.length;
}
