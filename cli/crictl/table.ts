// Columns as crictl aligns them: at least `minWidth` wide, three spaces to the next, the last column as long as it is.
// Pure.

const PADDING = 3;
const MIN_WIDTH = 20;

/** Characters, not UTF-16 units. */
const width = (text: string): number => [...text].length;

/** Lines for `rows`, each with its line feed. Rows have one length. */
export function table(rows: readonly (readonly string[])[], minWidth = MIN_WIDTH): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.slice(0, -1).entries()) {
      widths[column] = Math.max(widths[column] ?? minWidth, width(cell) + PADDING);
    }
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - width(cell)),
      )
      .join('');
  return rows.map((row) => `${line(row)}\n`).join('');
}
