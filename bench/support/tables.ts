/** What a benchmark keeps for docs/benchmarks.md: `npm run bench -- all` collects it. Run alone, it only prints. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Cell = string | number

export interface Table {
  /** Of the table, of its picture and of its figures: letters and dashes. */
  readonly id: string
  readonly title: string
  /** What was measured, and how. */
  readonly about: string
  readonly columns: readonly string[]
  /** The first cell names the row. */
  readonly rows: readonly (readonly [string, ...Cell[]])[]
  /** Draws one column as bars. */
  readonly plot?: {
    readonly column: string
    /** What the bars measure, with its unit. */
    readonly axis: string
    /** For values that are many times each other. */
    readonly log?: boolean
  }
  /** What a reader could take from the table, and must not. */
  readonly notShown: string
}

/** Where tables are kept; set by `npm run bench -- all`. */
export const FOLDER = 'DRAINABLE_BENCH'

export function keep(table: Table): void {
  const folder = process.env[FOLDER]
  if (folder !== undefined) writeFileSync(join(folder, `${table.id}.json`), JSON.stringify(table))
}
