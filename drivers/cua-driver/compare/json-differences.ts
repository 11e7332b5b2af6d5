/** How many places of one answer are named. */
const MAX_PLACES = 5;
const MAX_TEXT = 200;

/** Where two JSON texts differ, a line a place, each with both sides; empty when they are the same text. */
export function jsonDifferences(ours: string, theirs: string): string[] {
  if (ours === theirs) return [];
  const places = [...differing(JSON.parse(ours), JSON.parse(theirs), "")].slice(0, MAX_PLACES);
  if (places.length > 0) return places;
  // The same value, written otherwise: another order of keys, or a number's other form.
  let at = 0;
  while (ours[at] === theirs[at]) at += 1;
  const from = Math.max(0, at - 40);
  return [`written otherwise: ours ${cut(ours.slice(from))} theirs ${cut(theirs.slice(from))}`];
}

function* differing(ours: unknown, theirs: unknown, path: string): Generator<string> {
  if (Object.is(ours, theirs)) return;
  if (isContainer(ours) && isContainer(theirs) && Array.isArray(ours) === Array.isArray(theirs)) {
    for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
      yield* differing(ours[key], theirs[key], `${path}/${key}`);
    }
    return;
  }
  yield `${path === "" ? "" : `${path}: `}ours ${shown(ours)} theirs ${shown(theirs)}`;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : cut(JSON.stringify(value));
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}
