/**
 * The text form of `/clusters`: four times cheaper than JSON for Envoy's main thread, one line a value,
 * `cluster::address::key::value`. An IPv6 address holds `::` itself, so a line that begins a host is cut from the right.
 *
 * Of ten thousand hosts a look asks for a few, and nearly all others are healthy: their lines are found by a search and
 * skipped, with their numbers added up.
 */
import { cutShort, malformed, type Source } from '../../../kit/json.js'
import { quote } from '../../../provider/quote.js'
import { canonicalMember, parseSocket } from './address.js'
import { ALL, type ClusterRows, type HostRow, type PlainHosts } from './admin.js'
import { NOBODY, sourceOf } from './answer.js'
import type { EdsStatus } from './status.js'

const STATS = new Set([
  'rq_active',
  'rq_total',
  'rq_pending_active',
  'cx_active',
  'cx_total',
  'health_flags',
  'priority',
  'weight',
])

/** Any of these begins the lines of a host; circuit breakers and outlier settings look alike otherwise. */
const HOST_STATS = new Set([...STATS, 'cx_connect_fail', 'rq_error', 'rq_success', 'rq_timeout'])

const NEWLINE = 10
const ZERO = 48

type Sums = { -readonly [key in keyof PlainHosts]: number }

/** Of a host that may be skipped: nothing is wrong with it. */
const HEALTHY = '::health_flags::healthy\n'

/** The text form of `/clusters`, in pieces, for the clusters and the hosts asked for. */
export class ClustersTextDecoder {
  readonly #clusters = new Map<string, Map<string, HostRow>>()
  readonly #services = new Map<string, string>()
  readonly #plain = new Map<string, Map<number, Sums>>()
  readonly #wanted: ReadonlySet<string> | undefined
  readonly #members: ReadonlySet<string> | undefined
  readonly #source: Source
  #rest = ''
  /** The host whose lines come in: what they all begin with, and what they said so far. */
  #head = ''
  #host: { hosts: Map<string, HostRow>; member: string; values: Map<string, string> } | undefined

  /** @param members - hosts to be read in any case; undefined: all */
  constructor(wanted?: Iterable<string>, from = NOBODY, members?: ReadonlySet<string>) {
    this.#members = members
    this.#source = sourceOf('/clusters', from)
    this.#wanted = wanted === undefined ? undefined : new Set(wanted)
  }

  push(chunk: string): void {
    const first = chunk.indexOf('\n') + 1
    if (first === 0) {
      this.#rest += chunk
      return
    }
    // What is left of the piece before is joined with its line alone: a copy of every piece costs as much as the search.
    this.#lines(this.#rest + chunk.slice(0, first))
    const whole = chunk.lastIndexOf('\n') + 1
    this.#rest = chunk.slice(whole)
    let start = first
    for (let at = this.#find(chunk, start); at !== -1; at = this.#find(chunk, at + 1)) {
      const block = this.#plainHost(chunk, start, at)
      if (block === undefined) continue
      this.#lines(chunk, start, block.start)
      start = block.end
    }
    this.#lines(chunk, start, whole)
  }

  #find(text: string, from: number): number {
    return this.#members === undefined ? -1 : text.indexOf(HEALTHY, from)
  }

  /** A host that need not be read, whose lines are all there; its numbers are added to those of the others. */
  #plainHost(
    text: string,
    from: number,
    at: number,
  ): { readonly start: number; readonly end: number } | undefined {
    const head = text.slice(text.lastIndexOf('\n', at) + 1, at + 2)
    const cut = head.indexOf('::')
    const member = head.slice(cut + 2, -2)
    // One that has begun to be read is read to its end; an address with colons is read too.
    if (member === '' || member.includes('::') || head === this.#head) return undefined
    const cluster = head.slice(0, cut)
    if (this.#members?.has(member) === true || this.#wanted?.has(cluster) === false)
      return undefined
    const start = text.startsWith(head, from) ? from : text.indexOf(head, from)
    const connections = numberAfter(text, 'cx_active::', start)
    const active = numberAfter(text, 'rq_active::', start)
    const priorityAt = text.indexOf('priority::', at)
    const priority = numberAfter(text, 'priority::', at)
    if (active === -1 || connections === -1 || priority === -1) return undefined
    if (!text.startsWith(head, priorityAt - head.length)) return undefined
    this.#count(cluster, { active, connections, priority })
    let end = text.indexOf('\n', priorityAt) + 1
    while (text.startsWith(head, end)) {
      const next = text.indexOf('\n', end) + 1
      if (next === 0) break
      end = next
    }
    return { start, end }
  }

  #count(cluster: string, host: Pick<HostRow, 'active' | 'connections' | 'priority'>): void {
    this.#hosts(cluster)
    const plain = this.#plain.get(cluster) ?? new Map<number, Sums>()
    this.#plain.set(cluster, plain)
    const sums = plain.get(host.priority) ?? { count: 0, active: 0, connections: 0 }
    plain.set(host.priority, sums)
    sums.count += 1
    sums.active += host.active
    sums.connections += host.connections
  }

  #lines(text: string, from = 0, to = text.length): void {
    for (let start = from; start < to;) {
      const end = text.indexOf('\n', start)
      this.#line(text, start, end)
      start = end + 1
    }
  }

  /** @throws `CONNECTION_LOST` where the last line has no end */
  finish(): ClusterRows[] {
    if (this.#rest !== '') throw cutShort(this.#source, this.#rest)
    this.#flush()
    return [...this.#clusters].map(([cluster, hosts]) => ({
      cluster,
      service: this.#services.get(cluster) ?? cluster,
      hosts,
      plain: this.#plain.get(cluster) ?? ALL,
    }))
  }

  #line(text: string, start: number, end: number): void {
    if (this.#head === '' || !text.startsWith(this.#head, start)) {
      if (!this.#begin(text, start, end)) return
    }
    if (this.#host === undefined) return
    const key = start + this.#head.length
    const value = text.indexOf('::', key)
    if (value === -1 || value >= end) return
    const name = text.slice(key, value)
    if (STATS.has(name)) this.#host.values.set(name, text.slice(value + 2, end))
  }

  /** A line of another host, or of none. */
  #begin(text: string, start: number, end: number): boolean {
    const value = text.lastIndexOf('::', end - 1)
    const key = value <= start ? -1 : text.lastIndexOf('::', value - 1)
    if (key === -1 || key < start) return false
    const name = text.slice(key + 2, value)
    const subject = text.slice(start, key)
    if (name === 'eds_service_name' || name === 'added_via_api') {
      if (name === 'eds_service_name') this.#services.set(subject, text.slice(value + 2, end))
      this.#hosts(subject)
      return false
    }
    const cut = subject.indexOf('::')
    if (cut === -1 || !HOST_STATS.has(name)) return false
    this.#flush()
    this.#head = `${subject}::`
    const hosts = this.#hosts(subject.slice(0, cut))
    const member = canonicalMember(subject.slice(cut + 2))
    this.#host = hosts === undefined ? undefined : { hosts, member, values: new Map() }
    return true
  }

  #flush(): void {
    if (this.#host === undefined) return
    const { hosts, member, values } = this.#host
    put(hosts, toRow(member, values, this.#source), this.#source)
    this.#host = undefined
  }

  #hosts(cluster: string): Map<string, HostRow> | undefined {
    if (this.#wanted?.has(cluster) === false) return undefined
    let hosts = this.#clusters.get(cluster)
    if (hosts === undefined) this.#clusters.set(cluster, (hosts = new Map<string, HostRow>()))
    return hosts
  }
}

function put(hosts: Map<string, HostRow>, row: HostRow, source: Source): void {
  const known = hosts.get(row.member)
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(row))
    throw malformed(source, 'one row for each host', quote(row.member))
  hosts.set(row.member, row)
}

function toRow(member: string, values: ReadonlyMap<string, string>, source: Source): HostRow {
  if (parseSocket(member) === undefined && !/^(\/|@|envoy:\/\/)/.test(member)) {
    throw malformed(source, 'the address of a host', `'${quote(member)}'`)
  }
  const number = (name: string): number | undefined => {
    const value = values.get(name)
    if (value === undefined) return undefined
    if (/^\d{1,15}$/.test(value)) return Number(value)
    throw malformed(source, `a count in ${member} ${name}`, `'${quote(value)}'`)
  }
  const [active, requests] = [number('rq_active'), number('rq_total')]
  if (active === undefined || requests === undefined)
    throw malformed(source, `rq_active and rq_total of ${quote(member)}`, 'none')
  const flags = new Set((values.get('health_flags') ?? '').split('/'))
  const eds = statusOf(flags)
  const isUnchecked = flags.has('pending_active_hc') || flags.has('excluded_via_immediate_hc_fail')
  return {
    member,
    active,
    pending: number('rq_pending_active'),
    connections: number('cx_active') ?? 0,
    begun: requests + (number('cx_total') ?? 0),
    eds,
    failedCheck: flags.has('failed_active_hc'),
    ejected: flags.has('failed_outlier_check'),
    degraded: flags.has('degraded_active_hc') || eds === 'DEGRADED',
    excluded: eds === 'DRAINING' || isUnchecked,
    pendingRemoval: flags.has('pending_dynamic_removal'),
    priority: number('priority') ?? 0,
    weight: number('weight') ?? 1,
  }
}

function statusOf(flags: ReadonlySet<string>): EdsStatus {
  if (flags.has('eds_status_draining')) return 'DRAINING'
  if (flags.has('failed_eds_health')) return 'UNHEALTHY'
  return flags.has('degraded_eds_health') ? 'DEGRADED' : 'HEALTHY'
}

/** The number after a key, up to the end of its line; -1: there is none. */
function numberAfter(text: string, key: string, from: number): number {
  const found = text.indexOf(key, from)
  if (found === -1) return -1
  let number = 0
  for (let i = found + key.length; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === NEWLINE) return i === found + key.length ? -1 : number
    if (code < ZERO || code > ZERO + 9) return -1
    number = number * 10 + code - ZERO
  }
  return -1
}
