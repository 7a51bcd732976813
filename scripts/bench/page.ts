/** docs/benchmarks.md and its plots, from what `npm run bench -- all` measured last. */
import type { Cell, Table } from '../../bench/support/tables.ts'

export interface Results {
  /** The machine, and what else it did. */
  readonly machine: Machine
  readonly tables: readonly Table[]
}

export interface Machine {
  /** ISO 8601, the day. */
  readonly day: string
  readonly cpu: string
  readonly cores: number
  readonly gigabytes: number
  readonly system: string
  readonly node: string
  /** The load average of the minute before the first benchmark, and after the last. */
  readonly load: readonly [number, number]
}

/** The page, which links to a plot for each table that has one. */
export function toPage({ machine, tables }: Results): string {
  const { day, cpu, cores, gigabytes, system, node, load } = machine
  const head = `# Benchmarks

<!-- Written by npm run bench -- all: edit the programs under bench/. -->

One run of \`npm run bench -- all\` on ${day}: ${cpu}, ${cores} cores, ${gigabytes} GB, ${system}, Node ${node}. The load average was
${load[0]} before and ${load[1]} after; where it is above ${cores}, times are those of a busy machine. Figures of two machines are not
compared: run it on yours. Each table says what it does not show.
`
  return [head, ...tables.map(toSection)].join('\n')
}

function toSection({ id, title, about, columns, rows, plot, notShown }: Table): string {
  const line = (cells: readonly Cell[]): string => `| ${cells.map(shown).join(' | ')} |`
  const picture = plot === undefined ? '' : `![${title}](pictures/bench-${id}.svg)\n\n`
  return `## ${title}

${about}

${picture}${[line(columns), line(columns.map((_, n) => (n === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')}

**Not shown.** ${notShown}
`
}

function shown(cell: Cell): string {
  return typeof cell === 'number' ? cell.toLocaleString('en') : cell.replaceAll('|', '\\|')
}

const WIDTH = 860
const LEFT = 400
const ROW = 30

/** A bar for each row; none for a table without a plot. */
export function toPlot({ title, columns, rows, plot }: Table): string | undefined {
  if (plot === undefined) return undefined
  const at = columns.indexOf(plot.column)
  const values = rows.map((row) => Number(row[at]))
  const most = Math.max(...values)
  const scale = (value: number): number =>
    plot.log === true ? Math.log10(1 + value) / Math.log10(1 + most) : value / most
  const bars = rows.map(([name], index) => {
    const value = values[index] ?? 0
    const y = 44 + index * ROW
    const width = Math.max(2, Math.round(scale(value) * (WIDTH - LEFT - 90)))
    return `  <text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>
  <rect x="${LEFT}" y="${y}" width="${width}" height="20" rx="3" fill="#2b66b1"/>
  <text x="${LEFT + width + 8}" y="${y + 15}">${value.toLocaleString('en')}</text>`
  })
  const height = 60 + rows.length * ROW
  const axis = `${plot.axis}${plot.log === true ? ' (bars on a logarithmic scale)' : ''}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="14" fill="#222">
  <title>${escaped(title)}</title>
  <rect width="${WIDTH}" height="${height}" fill="#fff"/>
  <text x="${LEFT}" y="26" font-size="13" fill="#555">${escaped(axis)}</text>
${bars.join('\n')}
</svg>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A figure as a page quotes it: `last-byte/drainable, defaults/p50 ms`. */
export function figureOf({ tables }: Results, name: string): string {
  const [id, row, column] = name.split('/')
  const table = tables.find((each) => each.id === id)
  const cells = table?.rows.find(([first]) => first === row)
  const cell = cells?.[table?.columns.indexOf(column ?? '') ?? -1]
  if (cell === undefined) throw new Error(`there is no figure ${name}`)
  return shown(cell)
}

const QUOTE = /<!-- figure: ([^>]+?) -->([^<]*)<!-- \/ -->/g

/** A page with its quoted figures as they were measured last. */
export function withFigures(page: string, results: Results): string {
  return page.replaceAll(
    QUOTE,
    (_, name: string) => `<!-- figure: ${name} -->${figureOf(results, name)}<!-- / -->`,
  )
}
