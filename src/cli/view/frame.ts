import { styleText } from 'node:util'
import cliTruncate from 'cli-truncate'
import { formatDuration } from '../../provider/duration.js'
import type { LoadEvent } from '../../core/events.js'
import { printable } from '../../provider/quote.js'
import { timeLeft, withoutName } from '../words/event.js'
import { TREND, type Board, type Row, type Stage } from './board.js'

/** What a frame has to fit into. */
export interface Terminal {
  readonly columns: number
  readonly rows: number
  /** Whether colours are wanted. Nothing is told by colour alone. */
  readonly colours: boolean
  /** Whether it can print more than ASCII. */
  readonly unicode: boolean
}

/** Below this width the numbers of a member have a line of their own. */
const NARROW = 60

const COLOURS: Readonly<Record<Stage, 'yellow' | 'green' | 'red' | 'cyan' | undefined>> = {
  active: undefined,
  draining: 'yellow',
  idle: 'green',
  removed: 'green',
  command: 'cyan',
  opening: 'cyan',
  ready: 'green',
  failed: 'red',
  postponed: 'yellow',
}

/** The members at one moment, as lines that fit the terminal. */
export function drawFrame(board: Board, now: number, terminal: Terminal): string {
  const rows = [...board.rows.values()].toSorted((a, b) => rank(a) - rank(b))
  const widths = widthsOf(rows, terminal)
  const blocks = rows.map((row) => drawRow(row, now, terminal, widths))
  // The last row of a terminal is the cursor's, and one more says how many did not fit.
  const room = Math.max(1, terminal.rows - 2)
  const shown: string[] = []
  let count = 0
  for (const block of blocks) {
    if (shown.length + block.length > room && count > 0) break
    shown.push(...block)
    count += 1
  }
  const more = blocks.length - count
  if (more > 0) shown.push(`and ${more} more`)
  const end = terminal.unicode ? '…' : '.'
  return shown
    .map((line) => cliTruncate(line, terminal.columns, { truncationCharacter: end }))
    .join('\n')
}

/** The widths of what stands before the trends, so that they stand below each other. */
interface Widths {
  readonly name: number
  readonly work: number
}

function widthsOf(rows: readonly Row[], { columns }: Terminal): Widths {
  if (columns < NARROW) return { name: 0, work: 0 }
  // One long name must not push the numbers of all others off the screen.
  const names = rows.map(({ name }) => name.length).filter((length) => length <= columns / 3)
  const works = rows.map(({ load }) => (load === undefined ? 0 : workOf(load).length))
  return { name: Math.max(0, ...names), work: Math.max(0, ...works) }
}

/** What waits stands above what is done. */
function rank({ stage }: Row): number {
  if (stage === 'failed') return 0
  if (stage === 'idle' || stage === 'removed') return 2
  return stage === 'ready' ? 3 : 1
}

function drawRow(row: Row, now: number, terminal: Terminal, widths: Widths): string[] {
  const { name, stage, load } = row
  const isNarrow = terminal.columns < NARROW
  const paint = COLOURS[stage]
  const word = stage.padEnd(isNarrow ? 0 : 9)
  const shown =
    terminal.colours && paint !== undefined
      ? styleText(paint, word, { validateStream: false })
      : word
  const numbers = load === undefined ? '' : numbersOf(row, now, terminal, widths)
  const first = isNarrow
    ? [`${name}  ${shown}`, `  ${numbers}`]
    : [`${name.padEnd(widths.name)}  ${shown} ${numbers}`]
  const why = whyOf(row)
  return [...first, ...why.map((line) => `  ${line}`)].map((line) => line.trimEnd())
}

/** Load, trend, oldest work and time left, the most important first: the end is cut where it does not fit. */
function numbersOf(
  { load, trend }: Row,
  now: number,
  { columns, unicode }: Terminal,
  widths: Widths,
): string {
  if (load === undefined) return ''
  const { oldest, deadline, phase } = load
  const width = columns < NARROW ? 12 : 20
  const parts = [
    workOf(load).padEnd(widths.work),
    sparkline(trend, now, width, unicode),
    oldest === null ? '' : `oldest ${formatDuration(Math.round(oldest / 1_000) * 1_000)}`,
    phase === 'idle' || phase === 'removed' ? '' : timeLeft(toMs(deadline), now),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

/** What is in flight and queued. */
function workOf({ active, queued, complete }: LoadEvent): string {
  return `${active}${queued === 0 ? '' : `+${queued} queued`}${complete ? '' : ' or more'}`
}

function toMs(iso: string | null): number | null {
  return iso === null ? null : Date.parse(iso)
}

/** What it waits for: every reason, or what came of it. */
function whyOf({ name, load, note }: Row): readonly string[] {
  const reasons = (load?.why ?? []).map(({ text }) => text)
  return (note === undefined ? reasons : [withoutName(note, name)]).map(printable)
}

const BARS = { unicode: '▁▂▃▄▅▆▇█', ascii: '_.-=+*#@' } as const

/** The load of the last minute, oldest first, as one character for each part of it. */
export function sparkline(trend: Row['trend'], now: number, width: number, unicode = true): string {
  const bars = unicode ? BARS.unicode : BARS.ascii
  const part = TREND / width
  const from = now - TREND
  const most = Math.max(1, ...trend.map(({ busy }) => busy))
  let text = ''
  for (let i = 0; i < width; i += 1) {
    const [begin, end] = [from + i * part, from + (i + 1) * part]
    const inside = trend.filter(({ at }) => at > begin && at <= end)
    const before = trend.findLast(({ at }) => at <= begin)
    const seen = [...(before === undefined ? [] : [before]), ...inside].map(({ busy }) => busy)
    if (seen.length === 0) text += ' '
    else text += bars[Math.ceil((Math.max(...seen) / most) * (bars.length - 1))] ?? ''
  }
  return text
}
