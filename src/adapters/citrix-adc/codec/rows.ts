/**
 * Rows of NITRO as values: what the configuration says of a member or a service, and what `stat`
 * counts for it.
 */
import { formatMember, type Row, type Subject, toCount, toCounter, toText } from './nitro.js'

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
  readonly health: 'up' | 'down' | 'unknown'
  /** Builds before 13.0 don't say. */
  readonly enabled: boolean | undefined
  readonly graceful: boolean | undefined
  readonly trofsReason: string | undefined
  /** In TROFS since a monitor saw its trofsCode: nobody disabled it. */
  readonly byMonitor: boolean
  /** Changes when somebody disables it in another way. */
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
  return PHASES[state.trim().toUpperCase()] ?? ['unknown', 'unknown']
}

/** A row of `servicegroup_servicegroupmember_binding`; undefined where it names no member. */
export function toMember(group: string, row: Row): Entry | undefined {
  const address = toAddress(row['ip'])
  const server = toText(row['servername']) ?? address
  const port = toCount(row['port'])
  if (server === undefined || server === '' || port === undefined) return undefined
  const subject: Subject = { kind: 'member', group, server, port }
  return toEntry(subject, formatMember(server, port), server, address, port, row)
}

/** A row of `service`; undefined where it has no name. */
export function toService(row: Row): Entry | undefined {
  const name = toText(row['name'])
  if (name === undefined || name === '') return undefined
  const address = toAddress(row['ipaddress']) ?? toAddress(row['ip'])
  const server = toText(row['servername']) ?? address ?? name
  return toEntry({ kind: 'service', name }, name, server, address, toCount(row['port']) ?? 0, row)
}

function toEntry(
  subject: Subject,
  member: string,
  server: string,
  address: string | undefined,
  port: number,
  row: Row,
): Entry {
  const svrstate = toText(row['svrstate']) ?? ''
  const [phase, health] = toPhase(svrstate)
  const state = toText(row['state'])?.toUpperCase()
  const graceful = toText(row['graceful'])?.toUpperCase()
  const delay = toText(row['delay'])
  const reason = toText(row['trofsreason'])?.trim() ?? ''
  const trofsReason = reason === '' || /^(none|0)$/i.test(reason) ? undefined : reason
  return {
    subject,
    member,
    // The name of the server stands for the address of members that DNS finds.
    identity: `${server}|${address ?? ''}:${port}`,
    server,
    address,
    port,
    weight: toCount(row['weight']),
    svrstate,
    phase,
    health,
    enabled: state === 'ENABLED' ? true : state === 'DISABLED' ? false : undefined,
    graceful: graceful === 'YES' ? true : graceful === 'NO' ? false : undefined,
    trofsReason,
    byMonitor: phase === 'trofs' && state === 'ENABLED' && trofsReason !== undefined,
    fingerprint: [state, graceful, delay].map((part) => part ?? '-').join('/'),
  }
}

/** 0.0.0.0 stands for "known by name alone". */
function toAddress(value: unknown): string | undefined {
  const text = toText(value)
  return text === undefined || text === '' || text === '0.0.0.0' || text === '::' ? undefined : text
}

/** A row of `servicegroup` or `service`. */
export function toTraits(row: Row): Traits {
  const flush = toText(row['downstateflush'])?.toUpperCase()
  return {
    servicetype: toText(row['servicetype'])?.toUpperCase() ?? '',
    flush: flush === 'ENABLED' ? true : flush === 'DISABLED' ? false : undefined,
    autoscale: toText(row['autoscale'])?.toUpperCase() ?? 'DISABLED',
    monitored: toText(row['healthmonitor'])?.toUpperCase() !== 'NO',
    disabled: toText(row['state'])?.toUpperCase() === 'DISABLED',
  }
}

/**
 * Counts of a row of `stat`; undefined where the row lacks what is needed.
 *
 * Idle connections to the backend are kept for reuse and counted as established: they are taken off.
 * A service also knows its transactions, the surge queue among them. Of types that are not HTTP each
 * connection is work, on the client's side too.
 */
export function toCounts(row: Row, servicetype: string): Counts | undefined {
  const type = servicetype === '' ? (toText(row['servicetype'])?.toUpperCase() ?? '') : servicetype
  const transactional = type === 'HTTP' || type === 'SSL'
  const established = toCount(row['svrestablishedconn']) ?? toCount(row['cursrvrconnections'])
  const transactions = transactional ? toCount(row['activetransactions']) : undefined
  const clients = toCount(row['curclntconnections'])
  const surge = toCount(row['surgecount'])
  const pooled = Math.max(0, toCount(row['curreusepool']) ?? 0)
  if (surge === undefined) return undefined
  if (established === undefined && transactions === undefined) return undefined
  const queued = Math.max(0, surge)
  const busy = Math.max(0, (established ?? 0) - pooled)
  const [phase, health] = toPhase(toText(row['state']) ?? '')
  const active =
    transactions !== undefined
      ? Math.max(0, transactions - queued)
      : transactional
        ? busy
        : Math.max(busy, (clients ?? 0) - queued)
  const isService = row['activetransactions'] !== undefined
  return {
    up: phase === 'in' && health === 'up',
    active,
    queued,
    pooled,
    arrivals: transactional && isService ? toCounter(row['totalrequests']) : undefined,
    surplus: transactions === undefined ? 0 : Math.max(0, busy - active),
    clients,
  }
}

/** Rows of `stat` by member: by address and port, or by the server's name where DNS finds the address. */
export class StatIndex {
  readonly #rows = new Map<string, Row>()

  constructor(rows: readonly Row[]) {
    for (const row of rows) {
      const port = toCount(row['primaryport'])
      const address = toAddress(row['primaryipaddress'])
      const name = toText(row['servername']) ?? toText(row['servicegroupname'])?.split('?')[1]
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
    return named !== undefined && toAddress(named['primaryipaddress']) === undefined
      ? named
      : undefined
  }
}
