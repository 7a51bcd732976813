/**
 * Rows of NITRO as values: what the configuration says of a member or a service, and what `stat`
 * counts for it.
 */
import { isIP } from '../../../provider/builtins.js'
import { type DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { formatMember, type Row, type Subject, toCount } from './nitro.js'

/** A state of the appliance, by what it means for new and for established work. */
export type SvrPhase =
  /** Enabled: it would get work, if its monitors let it. */
  | 'in'
  /** Transition out of service: established work and clients with a persistence entry. */
  | 'trofs'
  | 'out'
  /** A word we don't know. */
  | 'unknown'

/** One member of a service group, or one service, as the configuration has it. */
export interface Entry {
  readonly subject: Subject
  /** As `observe('all')` names it. */
  readonly member: string
  readonly identity: string
  readonly server: string
  readonly address: string | undefined
  readonly port: number
  readonly weight: number | undefined
  /** The appliance's own word. */
  readonly svrstate: string
  readonly phase: SvrPhase
  /** DOWN and DISABLED at once: some documents say that of what was shut down, others of nothing. */
  readonly shut: boolean
  readonly health: 'up' | 'down' | 'unknown'
  /** Builds before 13.0 don't say. */
  readonly enabled: boolean | undefined
  readonly graceful: boolean | undefined
  readonly trofsReason: string | undefined
  /** In TROFS since a monitor saw its trofsCode: no client disabled it. */
  readonly byMonitor: boolean
  /** Changes when a client disables it in another way. */
  readonly fingerprint: string
}

/** What a group, or the service itself, says about all work on it. */
export interface Traits {
  readonly servicetype: string
  /** downStateFlush: whether going out of service cuts what is established. */
  readonly flush: boolean | undefined
  readonly autoscale: string
  readonly monitored: boolean
  /** The whole group was disabled. */
  readonly disabled: boolean
}

/** What `stat` counts. */
export interface Counts {
  /** The counts come with UP: they are of a member in service. */
  readonly up: boolean
  readonly active: number
  readonly queued: number
  readonly pooled: number
  readonly arrivals: number | undefined
  /** Established connections to the backend that no transaction accounts for. */
  readonly surplus: number
  readonly clients: number | undefined
}

/** The long words of the configuration, the short ones and the numbers of `stat`. */
const PHASES: Readonly<Record<string, readonly [SvrPhase, 'up' | 'down' | 'unknown']>> = {
  UP: ['in', 'up'],
  '7': ['in', 'up'],
  DOWN: ['in', 'down'],
  '1': ['in', 'down'],
  UNKNOWN: ['in', 'unknown'],
  '2': ['in', 'unknown'],
  BUSY: ['in', 'unknown'],
  '3': ['in', 'unknown'],
  'GOING OUT OF SERVICE': ['trofs', 'up'],
  TROFS: ['trofs', 'up'],
  '5': ['trofs', 'up'],
  'DOWN WHEN GOING OUT OF SERVICE': ['trofs', 'down'],
  TROFS_DOWN: ['trofs', 'down'],
  '8': ['trofs', 'down'],
  'OUT OF SERVICE': ['out', 'unknown'],
  OFS: ['out', 'unknown'],
  '4': ['out', 'unknown'],
  DISABLED: ['out', 'unknown'],
}

/** What a state means, in any spelling of it. `Unknown`, unlike `UNKNOWN`, is no state at all. */
export function toPhase(state: string): readonly [SvrPhase, 'up' | 'down' | 'unknown'] {
  if (state === 'Unknown') return ['unknown', 'unknown']
  return PHASES[state.slice(0, 80).trim().toUpperCase()] ?? ['unknown', 'unknown']
}

/** A row of `servicegroup_servicegroupmember_binding`. */
export function toMember(group: string, row: Row): Entry {
  assertNamed(row, 'servicegroupname', group)
  const address = toAddress(row.at('ip'))
  const server = row.at('servername').word() ?? address
  const port = toPort(row.at('port'))
  if (server === undefined || server === '' || port === undefined) {
    throw row.wrong('a member with its servername and port')
  }
  const subject: Subject = { kind: 'member', group, server, port }
  return toEntry(subject, formatMember(server, port), server, address, port, row)
}

/** The members of a group, as far as their rows can be read. */
export interface Members {
  readonly entries: readonly Entry[]
  /** What can't be read: nothing is said of these, nor of what is not among the entries. */
  readonly odd: readonly DrainableError[]
}

/** A row that is odd hides no other one. One that is repeated is one member; two that differ are none. */
export function toMembers(group: string, rows: readonly Row[]): Members {
  const found = new Map<string, Entry>()
  const odd = new Map<string, DrainableError>()
  for (const [i, row] of rows.entries()) {
    try {
      const entry = toMember(group, row)
      const { identity } = entry
      const known = found.get(identity) ?? entry
      if (JSON.stringify(known) !== JSON.stringify(entry)) {
        odd.set(identity, row.wrong('one row for each member'))
      }
      found.set(identity, entry)
    } catch (error) {
      if (!isDrainableError(error, 'MALFORMED_REPLY')) throw error
      odd.set(`row ${i}`, error)
    }
  }
  const read = [...found.values()].filter(({ identity }) => !odd.has(identity))
  const named = Map.groupBy(read, ({ member }) => member)
  const entries = [...named.values()].flatMap((same) =>
    same.length > 1 ? same.map(byAddress) : same,
  )
  return { entries, odd: [...odd.values()] }
}

/** Rows that DNS made of one server share its name and port: each is told apart by its address. */
function byAddress(entry: Entry): Entry {
  const { address, subject, port } = entry
  if (address === undefined || subject.kind === 'service') return entry
  return { ...entry, member: formatMember(address, port), subject: { ...subject, address } }
}

/** A row of `service`. */
export function toService(row: Row): Entry {
  const name = row.at('name').neededText()
  const address = toAddress(row.at('ipaddress')) ?? toAddress(row.at('ip'))
  const server = row.at('servername').word() ?? address ?? name
  return toEntry({ kind: 'service', name }, name, server, address, toPort(row.at('port')) ?? 0, row)
}

/** What answers for another object than the one that was asked for is no answer. Names are known in any case. */
export function assertNamed(row: Row, key: string, name: string): void {
  const told = row.at(key).word()
  if (told === undefined || told.toLowerCase() === name.toLowerCase()) return
  throw row.at(key).wrong(`'${quote(name)}', as was asked for`)
}

function toEntry(
  subject: Subject,
  member: string,
  server: string,
  address: string | undefined,
  port: number,
  row: Row,
): Entry {
  const svrstate = row.at('svrstate').word() ?? ''
  const [told, health] = toPhase(svrstate)
  const state = row.at('state').word()?.toUpperCase()
  // In service and disabled: one of the two is not true.
  const phase = told === 'in' && state === 'DISABLED' ? 'unknown' : told
  const graceful = row.at('graceful').word()?.toUpperCase()
  const delay = row.at('delay').word()
  const reason = row.at('trofsreason').word()?.trim() ?? ''
  const trofsReason = reason === '' || /^(none|0)$/i.test(reason) ? undefined : quote(reason)
  return {
    subject,
    member,
    // The name of the server stands for the address of members that DNS finds.
    identity: `${server}|${address ?? ''}:${port}`,
    server,
    address,
    port,
    weight: toCount(row.at('weight')),
    svrstate,
    phase,
    shut: phase === 'unknown' && health === 'down',
    health,
    enabled: state === 'ENABLED' ? true : state === 'DISABLED' ? false : undefined,
    graceful: graceful === 'YES' ? true : graceful === 'NO' ? false : undefined,
    trofsReason,
    byMonitor: phase === 'trofs' && state === 'ENABLED' && trofsReason !== undefined,
    fingerprint: [state, graceful, delay].map((part) => part ?? '-').join('/'),
  }
}

/** 0.0.0.0 stands for "known by name alone". */
function toAddress(value: Row): string | undefined {
  const text = value.text()
  if (text === undefined || text === '' || text === '0.0.0.0' || text === '::') return undefined
  if (isIP(text) !== 0) return text
  throw value.wrong('an IP address')
}

function toPort(value: Row): number | undefined {
  const port = toCount(value)
  if (port === undefined || port <= 65_535) return port
  throw value.wrong('a port')
}

/** A row of `servicegroup` or `service`. */
export function toTraits(row: Row): Traits {
  const flush = row.at('downstateflush').word()?.toUpperCase()
  return {
    servicetype: row.at('servicetype').word()?.toUpperCase() ?? '',
    flush: flush === 'ENABLED' ? true : flush === 'DISABLED' ? false : undefined,
    autoscale: row.at('autoscale').word()?.toUpperCase() ?? 'DISABLED',
    monitored: row.at('healthmonitor').word()?.toUpperCase() !== 'NO',
    disabled: row.at('state').word()?.toUpperCase() === 'DISABLED',
  }
}

/** Whether requests are counted: the vendor's words name HTTP and SSL, and no other type. */
export function countsRequests(servicetype: string): boolean {
  return servicetype === 'HTTP' || servicetype === 'SSL'
}

/**
 * Counts of a row of `stat`; undefined where the row lacks what is needed.
 *
 * Idle connections to the backend are kept for reuse and counted as established: they are taken off. A request that
 * leaves the surge queue can need a new connection: until that is established only `cursrvrconnections` has it.
 * A service also knows its transactions, the surge queue among them. Of types that are not HTTP each
 * connection is work, on the client's side too.
 */
export function toCounts(row: Row, servicetype: string): Counts | undefined {
  const type =
    servicetype === '' ? (row.at('servicetype').word()?.toUpperCase() ?? '') : servicetype
  const transactional = countsRequests(type)
  const all = toCount(row.at('cursrvrconnections'))
  const established = toCount(row.at('svrestablishedconn')) ?? all
  const current = all ?? established
  const transactions = transactional ? toCount(row.at('activetransactions')) : undefined
  const clients = toCount(row.at('curclntconnections'))
  const surge = toCount(row.at('surgecount'))
  const pooled = toCount(row.at('curreusepool')) ?? 0
  if (surge === undefined) return undefined
  if (current === undefined && transactions === undefined) return undefined
  const queued = surge
  const busy = Math.max(0, (established ?? 0) - pooled)
  const open = Math.max(busy, (current ?? 0) - pooled)
  const [phase, health] = toPhase(row.at('state').word() ?? '')
  const active =
    transactions !== undefined
      ? Math.max(0, transactions - queued)
      : transactional
        ? open
        : Math.max(open, (clients ?? 0) - queued)
  return {
    up: phase === 'in' && health === 'up',
    active,
    queued,
    pooled,
    arrivals: transactional ? row.at('totalrequests').counter() : undefined,
    surplus: transactions === undefined ? 0 : Math.max(0, busy - active),
    clients,
  }
}

/** Rows of `stat` by member: by address and port, or by the server's name where DNS finds the address. */
export class StatIndex {
  readonly #rows = new Map<string, Row>()

  constructor(rows: readonly Row[]) {
    for (const row of rows) {
      const port = toCount(row.at('primaryport'))
      const address = toAddress(row.at('primaryipaddress'))
      const name = row.at('servername').word() ?? row.at('servicegroupname').text()?.split('?')[1]
      if (port === undefined) continue
      if (name !== undefined) this.#rows.set(`name ${name.toLowerCase()} ${port}`, row)
      if (address !== undefined) this.#rows.set(`address ${address.toLowerCase()} ${port}`, row)
    }
  }

  of({ address, server, port }: Entry): Row | undefined {
    const named = this.#rows.get(`name ${server.toLowerCase()} ${port}`)
    if (address === undefined) return named
    const found = this.#rows.get(`address ${address.toLowerCase()} ${port}`)
    if (found !== undefined) return found
    // A name alone is enough only where the row has no address that says otherwise.
    return named !== undefined && toAddress(named.at('primaryipaddress')) === undefined
      ? named
      : undefined
  }
}
