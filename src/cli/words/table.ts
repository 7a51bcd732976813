import { printable } from '../../provider/quote.js'

/** A table of text: columns as wide as their widest cell, two blanks between them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map(printable))
  const widths = head.map((_, i) => Math.max(...cells.map((row) => (row[i] ?? '').length)))
  return cells
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
