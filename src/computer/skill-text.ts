/** A tool of computer/v1 as our texts name it. */
const NAMED_TOOL = /`(computer_[a-z]+(?:_[a-z]+)*)`/g;
const TABLE_RULE = /^\|[\s|:-]+\|$/;

/**
 * Markdown of ours without what names a tool of computer/v1 that the reader hasn't got: a list item, a table's row or a
 * paragraph goes as a whole, and a table without a row left.
 */
export function withoutMissing(markdown: string, allows: (tool: string) => boolean): string {
  const kept = unitsOf(markdown).filter((unit) => toolsNamed(unit).every(allows));
  const lines = kept.join("\n").split("\n");
  const full = lines.filter((line, at) => {
    const isHead = TABLE_RULE.test(lines[at + 1] ?? "");
    const next = lines[at + (isHead ? 2 : 1)] ?? "";
    return !(isHead || TABLE_RULE.test(line)) || next.startsWith("|");
  });
  return full.join("\n").replace(/\n{3,}/g, "\n\n");
}

/** The tools of computer/v1 that a text of ours names. */
export function toolsNamed(text: string): string[] {
  return [...text.matchAll(NAMED_TOOL)].map(([, name]) => name as string);
}

/** What stays or goes as a whole: each with all of its lines, blank lines by themselves. */
function unitsOf(markdown: string): string[] {
  const units: string[] = [];
  let open = false;
  for (const line of markdown.split("\n")) {
    const stands = line === "" || /^(\||#|- |\d+\. )/.test(line);
    if (open && !stands) units.push(`${units.pop()}\n${line}`);
    else units.push(line);
    open = line !== "" && !/^(\||#)/.test(line);
  }
  return units;
}

/** Words as a sentence lists them: `a`, `a and b`, `a, b and c`. */
export function enumerated(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
