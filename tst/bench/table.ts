import { styleText } from "node:util";
import { type Row, reached } from "./measure.js";

/** Prints one section's rows in columns. */
export function printRows(title: string, rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.name,
    row.p50.toFixed(2),
    row.p95.toFixed(2),
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

function verdict(row: Row): string {
  const done = reached(row);
  return done === undefined ? "" : done ? "reached" : "MISSED";
}
