import { styleText } from "node:util";
import { type Row, reached } from "./measure.js";

/** Prints one section's rows in columns. */
export function printRows(title: string, rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.name,
    digits(row.p50),
    digits(row.p95),
    String(row.count),
    row.ratio === undefined ? "" : `${row.ratio.toFixed(2)} × ${row.against}`,
    row.goal === undefined ? "" : "most" in row.goal ? `≤ ${row.goal.most}` : `≥ ${row.goal.least}`,
    verdict(row),
  ]);
  const head = ["", "p50 ms", "p95 ms", "calls", "ratio", "to reach", ""];
  const widths = head.map((_, column) => Math.max(...[head, ...cells].map((each) => each[column]?.length ?? 0)));
  const line = (each: string[]) =>
    each
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  console.log(`\n${styleText("bold", title, { stream: process.stdout })}`);
  for (const each of [head, ...cells]) console.log(line(each));
}

/** A ratio of hundredths of a millisecond can't be told from numbers of hundredths. */
function digits(value: number): string {
  return value.toFixed(value < 1 ? 3 : 2);
}

function verdict(row: Row): string {
  const done = reached(row);
  return done === undefined ? "" : done ? "reached" : "MISSED";
}
