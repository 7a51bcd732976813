import type { AdminState, DrainReport, MemberRef, Policy, Ticket, Why } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import type { UserProcess } from '../user/user-process.js'
import { keyOf, RANK } from '../world/member.js'
import type { Delivery, ModelProvider } from '../world/model-provider.js'
import type { Sent, Side, SideListener } from './side.js'

/** One call of the library over several balancers, as its judge knows it. */
export interface Call {
  readonly verb: 'drain' | 'start' | 'resume' | 'step' | 'watch' | 'ready' | 'undo'
  readonly id: string
  readonly process: UserProcess
  /** What it can be about: `balancer pool/member`. */
  readonly keys: ReadonlySet<string>
  readonly policy: Policy
  readonly startedAt: number
  live: boolean
}

/** What a row of a report says, as far as it is judged. */
type Row = Pick<DrainReport['members'][number], 'ref' | 'outcome' | 'verifiedIdle'>

/** One member of which idle is said: where it is, and the look that this rests on. */
interface Seen {
  readonly what: string
  /** When each process was sampled last, the oldest. */
  readonly sampledAt: number
  /** When its last work before that was over. */
  readonly busyUntil: number
}

/** Moments are compared beyond this, in milliseconds: samples are told apart by less. */
const TOLERANCE = 1
/** So many looks may pass until a thing that a look shows must be known. */
const LOOKS = 2

/** Compares what is said of several balancers with the truth of each. */
export class CombinedJudge implements SideListener {
  readonly faults: string[] = []
  readonly calls: Call[] = []
  readonly sides: Side[] = []
  /** How often what is judged was said. */
  readonly counts = new Map<string, number>()
  readonly #clock: FakeClock
  readonly #tell: (text: string) => void

  constructor(clock: FakeClock, tell: (text: string) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  get now(): number {
    return this.#clock.now()
  }

  get truth(): { tell: (text: string) => void } {
    return { tell: this.#tell }
  }

  fault(rule: string, text: string): void {
    this.#tell(`FAULT ${rule}: ${text}`)
    this.faults.push(`${rule}: ${text}`)
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  opens(call: Omit<Call, 'startedAt' | 'live'>): Call {
    const opened = { ...call, startedAt: this.now, live: true }
    this.calls.push(opened)
    this.count(`calls: ${call.verb}`)
    return opened
  }

  crashed(process: UserProcess): void {
    for (const call of this.calls) if (call.process === process) call.live = false
  }

  side(key: string | undefined): Side | undefined {
    return this.sides.find((side) => side.key === key)
  }

  // --- what is said

  /** Every row and every reason names its balancer. */
  names(what: string, refs: readonly MemberRef[]): void {
    for (const ref of refs)
      if (this.side(ref.balancer) === undefined)
        this.fault('names', `${what} names ${JSON.stringify(ref)}`)
  }

  report(what: string, { members, error }: DrainReport): void {
    const refs = members.flatMap(({ ref, why, error: own, lastReading }) => [
      ref,
      ...why.map((each) => each.ref),
      ...(own?.ref === undefined ? [] : [own.ref]),
      ...(lastReading === undefined ? [] : [lastReading.ref]),
    ])
    // Whose a target without a balancer is can't be told where one was never read.
    this.names(
      what,
      refs.filter(({ member, balancer }) => member !== '*' || balancer !== undefined),
    )
    if (error?.ref?.balancer !== undefined) this.names(what, [error.ref])
  }

  why(what: string, why: readonly Why[]): void {
    // Before it is known which balancers a call is about, nothing can be named.
    this.names(
      what,
      why.map(({ ref }) => ref).filter(({ pool }) => pool !== '*'),
    )
  }

  ticket(what: string, { members, parts }: Ticket): void {
    this.names(
      what,
      members.map(({ ref }) => ref),
    )
    for (const { balancer } of parts)
      if (this.side(balancer ?? undefined) === undefined)
        this.fault('names', `${what} has a part of ${balancer}`)
  }

  /** A member is called idle by one look. */
  saysIdle(call: Call, ref: MemberRef): void {
    this.count(`idle of a member: ${call.verb}`)
    this.#seen(call, ref, `${call.verb} ${call.id}`)
  }

  /** A call has its outcome: what of it is verified idle was so on all balancers at one moment. */
  saysOutcome(call: Call, outcome: string, rows: readonly Row[]): void {
    this.count(`outcome: ${outcome}`)
    const what = `${call.verb} ${call.id}`
    const proved = rows.filter((row) => row.outcome === 'idle' && row.verifiedIdle)
    const seen = proved.flatMap(({ ref }) => this.#seen(call, ref, what) ?? [])
    if (outcome !== 'idle' || seen.length < 2 || proved.length < rows.length) return
    this.count(`idle at once: ${call.verb}`)
    const last = seen.reduce((a, b) => (b.busyUntil > a.busyUntil ? b : a))
    const first = seen.reduce((a, b) => (b.sampledAt < a.sampledAt ? b : a))
    if (last.busyUntil > first.sampledAt + TOLERANCE)
      this.fault(
        'at once',
        `${what}: ${last.what} was at work until ${Math.round(last.busyUntil)}, ${first.what} was read at ${Math.round(first.sampledAt)}`,
      )
  }

  /** The looks at a member by the provider of a call: every call on it is told what they show. */
  looksAt({ process }: Call, side: Side, key: string): readonly Delivery[] {
    const all = providerOn(process, side)?.deliveries ?? []
    return all.filter(({ snapshot }) => snapshot.readings.some(({ ref }) => keyOf(ref) === key))
  }

  /** What the newest look showed of a member that is called idle; one that has just come may not be known yet. */
  #seen(call: Call, ref: MemberRef, what: string): Seen | undefined {
    const side = this.side(ref.balancer)
    if (side === undefined) return undefined
    const key = keyOf(ref)
    const name = `${side.key} ${key}`
    const looks = this.looksAt(call, side, key)
    const before = looks.findLast(({ at }) => at < this.now)
    const known = [
      ...(before === undefined ? [] : [before]),
      ...looks.filter(({ at }) => at === this.now),
    ]
    const found = known.map((look) => this.#read(call, side, key, look))
    const good = found.findLast((one) => typeof one !== 'string')
    if (good !== undefined) return { what: name, ...good }
    const bad = found.findLast((one) => typeof one === 'string') ?? 'without a look'
    this.fault('idle', `${what}: ${name} is called idle ${bad}`)
    return undefined
  }

  #read(
    call: Call,
    side: Side,
    key: string,
    { askedAt, snapshot }: Delivery,
  ): Omit<Seen, 'what'> | string {
    if (askedAt < call.startedAt - side.truth.product.capabilities.freshness - TOLERANCE)
      return 'by a look from before the call'
    const reading = snapshot.readings.find(({ ref }) => keyOf(ref) === key)
    if (reading === undefined) return 'without a reading'
    let sampledAt = Infinity
    for (const { scope, state, sampledAt: at } of reading.scopes) {
      if (state === 'ended') continue
      if (state === 'unread') return `with ${scope} unread`
      const fact = side.factOf(scope, at, key)
      if (fact !== undefined && fact.total > 0)
        return `with ${fact.total} (${fact.hidden} hidden) on ${scope} at ${Math.round(at)}`
      sampledAt = Math.min(sampledAt, at)
    }
    return { sampledAt, busyUntil: side.busyUntil(key, sampledAt) }
  }

  // --- what is done

  isOpening(side: Side, process: UserProcess, key: string): boolean {
    return this.calls.some(
      (call) =>
        call.live &&
        call.verb === 'ready' &&
        call.process === process &&
        call.keys.has(`${side.key} ${key}`),
    )
  }

  executes({ side, member, change, process, sentAt, byReady }: Sent): void {
    const { key, own } = member
    const wish = side.wishes.get(key)
    if (wish === undefined || byReady) return
    const seen = providerOn(process, side)?.deliveries.filter(
      ({ readAt, at, snapshot }) =>
        readAt > wish.at &&
        at < sentAt &&
        snapshot.readings.some(
          (reading) => keyOf(reading.ref) === key && reading.present && reading.own === wish.to,
        ),
    )
    if (seen === undefined || seen.length < LOOKS) return
    if (change.kind === 'restore' && own === change.expect && isBelow(change.to, wish.to))
      this.fault('operator', `${side.key} ${key} is opened, an operator had set ${wish.to}`)
    if (change.kind !== 'hold' || wish.to !== 'ready' || side.reloadedAt > 0) return
    const calls = this.calls.filter(
      (call) => call.live && call.process === process && call.keys.has(`${side.key} ${key}`),
    )
    const isOld = ({ startedAt, policy, verb }: Call): boolean =>
      startedAt < wish.at && policy.onOverrule !== 'reapply' && verb !== 'step'
    if (own === 'ready' && member.sets.length > 1 && calls.every(isOld))
      this.fault('operator', `${side.key} ${key} is closed, an operator had opened it`)
  }
}

export function providerOn(process: UserProcess, side: Side): ModelProvider | undefined {
  return process.providers.find(({ instance }) => instance === `balancer ${side.key}`)
}

function isBelow(one: AdminState, other: AdminState): boolean {
  return RANK[one] < RANK[other]
}
