import { distance } from "fastest-levenshtein";

/** The candidate that is spelt most like `word`, undefined where none comes near: what an error suggests. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3));
  const near = candidates
    .map((candidate) => ({ candidate, apart: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ apart }) => apart <= limit)
    .sort((a, b) => a.apart - b.apart);
  return near[0]?.candidate;
}
