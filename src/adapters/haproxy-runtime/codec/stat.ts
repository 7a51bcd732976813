import { type AgentWord, toAgentWord } from '../../../kit/haproxy/agents.js'
import type { CheckCounts } from '../../../kit/haproxy/checks.js'
import { isDigits, malformed } from './replies.js'

/** Decoder of `show stat` in CSV: columns by header name, 2.6 has far fewer than 3.x. */

/** The fields that are read from one row: a server, or the BACKEND line. */
export interface StatRow {
  readonly pool: string
  readonly name: string
  readonly kind: 'frontend' | 'backend' | 'server' | 'other'
  /** `http`, `tcp`, `syslog`; empty if the release does not tell. */
  readonly mode: string
  /** The numeric ids of the proxy and of the server. */
  readonly iid: string
  readonly sid: string
  readonly active: number
  readonly queued: number
  /** `stot` + `wretr`: everything that starts or restarts work. */
  readonly arrivals: number
  /** How many requests a server takes at once; 0 for no limit. */
  readonly limit: number
  /**
   * Whether a request can be bound to this server and be in none of these counts: it has a limit (`slim`) or had a
   * queue (`qmax`), so that one can be on its way from the queue; or a connect was tried again (`wretr`).
   */
  readonly mayHide: boolean
  /** Reusable server connections without work. */
  readonly pooled: number
  readonly status: string
  /** For a server: 1 or 0. For the BACKEND line: how many servers of that kind would get work. */
  readonly activeServers: number
  readonly backupServers: number
  /** The `backend/server` whose state this one follows. */
  readonly tracked: string
  /** `address:port`; empty at level user. */
  readonly address: string
  readonly check: CheckCounts | undefined
  /** What HAProxy reports of its agent; undefined if it has none. */
  readonly agent: AgentWord | undefined
}

const KINDS = ['frontend', 'backend', 'server'] as const
const NEEDED = ['pxname', 'svname', 'qcur', 'scur', 'stot', 'status', 'iid', 'sid', 'type'] as const
const USED = [
  ...NEEDED,
  'wretr',
  'slim',
  'qmax',
  'idle_conn_cur',
  'safe_conn_cur',
  'act',
  'bck',
  'tracked',
  'addr',
  'agent_status',
  'last_agt',
  'mode',
  'check_status',
  'check_rise',
  'check_fall',
  'check_health',
] as const

type Column = (typeof USED)[number]

/** The positions of the columns that are used. */
interface Header {
  readonly text: string
  readonly width: number
  /** Whether the names of proxy and server come first. */
  readonly namesFirst: boolean
  /** The index of each column, or -1 if there is no such column. */
  readonly at: Readonly<Record<Column, number>>
}

/** One line of CSV, as text and split into cells. */
interface Line {
  readonly text: string
  readonly cells: readonly string[]
}

/** The last header: it is 3 KB of every reply, and the same for all replies of a version. */
let known: Header | undefined

/** The rows that are read of a reply: a backend's own, and those of some of its servers. */
export interface Rows {
  readonly pool: string
  readonly names: ReadonlySet<string>
}

/**
 * Reads a reply of `show stat`.
 *
 * @param only - the rows to read; the others of a dump are passed over. Default: all
 * @throws `MALFORMED_REPLY` if the header or a needed column is missing, or a count is not a number
 */
export function parseStat(reply: string, only?: Rows): StatRow[] {
  const end = reply.indexOf('\n')
  const header = readHeader(end === -1 ? reply : reply.slice(0, end), reply)
  const seen = new Map<string, string>()
  const rows = end === -1 ? '' : reply.slice(end + 1)
  // HAProxy quotes no name that it allows.
  const wanted = only && header.namesFirst && !rows.includes('"') ? pick(rows, only) : rows
  return csvLines(wanted).map(({ text, cells }) => {
    const row = toRow(cells, header)
    const name = `${row.kind} ${row.pool}/${row.name}`
    if ((seen.get(name) ?? text) !== text) throw malformed(`one row for ${name}`, text)
    seen.set(name, text)
    return row
  })
}

/** The lines of these rows: of 10,000 lines, splitting each into its cells takes most of the time of a look. */
function pick(rows: string, { pool, names }: Rows): string {
  const start = `${pool},`
  const lines: string[] = []
  for (let at = 0; at < rows.length;) {
    const next = rows.indexOf('\n', at)
    const end = next === -1 ? rows.length : next
    if (rows.startsWith(start, at)) {
      const name = rows.slice(at + start.length, rows.indexOf(',', at + start.length))
      if (name === 'BACKEND' || names.has(name)) lines.push(rows.slice(at, end))
    }
    at = end + 1
  }
  return lines.join('\n')
}

function readHeader(text: string, reply: string): Header {
  if (known?.text === text) return known
  if (!text.startsWith('# ')) throw malformed("the CSV of 'show stat'", reply)
  const names = text.slice(2).split(',')
  const places = USED.map((name) => [name, names.lastIndexOf(name)] as const)
  const at = Object.fromEntries(places) as Record<Column, number>
  const missing = NEEDED.filter((name) => at[name] === -1)
  if (missing.length > 0)
    throw malformed(`'show stat' with the columns ${missing.join(', ')}`, reply)
  known = { text, width: names.length, namesFirst: at.pxname === 0 && at.svname === 1, at }
  return known
}

function toRow(cells: readonly string[], { at, width }: Header): StatRow {
  const wrong = (expected: string): Error =>
    malformed(`${expected} of 'show stat'`, cells.join(','))
  if (cells.length !== width) throw wrong(`a row of ${width} cells`)
  const text = (name: Column): string => cells[at[name]] ?? ''
  /** A cell is empty if the column does not apply to this row. */
  const number = (name: Column): number => {
    const value = text(name)
    if (value === '' || isDigits(value)) return Number(value)
    throw wrong(`a number in column ${name}`)
  }
  const needed = (name: Column): string => {
    const value = text(name)
    if (value === '') throw wrong(`something in column ${name}`)
    return value
  }
  needed('type')
  const kind = KINDS[number('type')] ?? 'other'
  const counted = kind === 'server' || kind === 'backend'
  const count = (name: Column): number => {
    if (counted) needed(name)
    return number(name)
  }
  const agent =
    text('agent_status') === '' ? undefined : toAgentWord(text('agent_status'), text('last_agt'))
  const checked = text('check_rise') !== '' && text('check_status') !== ''
  return {
    pool: needed('pxname'),
    name: needed('svname'),
    kind,
    mode: text('mode'),
    iid: needed('iid'),
    sid: needed('sid'),
    active: count('scur'),
    queued: count('qcur'),
    arrivals: count('stot') + (text('wretr') === '' ? 0 : count('wretr')),
    limit: number('slim'),
    mayHide: kind === 'server' && (['slim', 'qmax', 'wretr'] as const).some((of) => number(of) > 0),
    pooled: number('idle_conn_cur') + number('safe_conn_cur'),
    status: counted ? needed('status') : text('status'),
    activeServers: number('act'),
    backupServers: number('bck'),
    tracked: text('tracked'),
    address: text('addr'),
    agent,
    check: checked
      ? {
          status: text('check_status'),
          rise: number('check_rise'),
          fall: number('check_fall'),
          health: number('check_health'),
        }
      : undefined,
  }
}

/** CSV as HAProxy writes it: quotes only where a cell needs them, `""` inside for one. */
function csvLines(rows: string): Line[] {
  if (!rows.includes('"')) {
    return rows
      .split('\n')
      .filter((text) => text !== '')
      .map((text) => ({ text, cells: text.split(',') }))
  }
  const lines: Line[] = []
  let cells: string[] = []
  let cell = ''
  let quoted = false
  for (let at = 0; at <= rows.length; at += 1) {
    const char = rows[at] ?? '\n'
    if (quoted && char === '"' && rows[at + 1] === '"') {
      cell += '"'
      at += 1
    } else if (char === '"') quoted = !quoted
    else if (!quoted && char === ',') {
      cells.push(cell)
      cell = ''
    } else if (!quoted && char === '\n') {
      const whole = [...cells, cell]
      if (cells.length > 0 || cell !== '') lines.push({ text: whole.join(), cells: whole })
      cells = []
      cell = ''
    } else cell += char
  }
  if (quoted) throw malformed("'show stat' whose quotes are closed", rows)
  return lines
}
