import { styleText } from "node:util";

/** Writes to standard output what a command was asked for; one line of JSON for machines. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** What a person should notice and a machine needn't read: to standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

type Style = Parameters<typeof styleText>[0];

/** Colour where standard output is a terminal that takes it (NO_COLOR and FORCE_COLOR are honoured). */
export function styled(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** Rows in columns, each as wide as its widest cell; the last one as it comes. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.slice(0, -1).entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  }
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
