import { readingsOf } from '../core/balancer/look/look.js'
import { removalRun } from '../core/calls/drain-run.js'
import { KEEPS_WORK, removesAtWork } from '../core/calls/policy.js'
import type { Run } from '../core/calls/run/run.js'
import type { FaultEvent } from '../core/events.js'
import type { PolicyData } from '../core/tickets/ticket.js'
import type { PresentReading } from '../provider/contract.js'
import { canonicalAddress } from '../provider/address.js'
import { wallOf } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import type { MemberReport } from '../provider/report.js'
import type { MemberDrain } from './member-drain.js'
import { isSameEnding, leastTime, type Ending } from './shape.js'
import type { Wanted, WorkSpec } from './work-spec.js'

/** A removal that is not waited for: the time of its call, in milliseconds. */
const AT_ONCE = 500

/** They say how it is with the member, and are no failure. */
const NO_FAULT: ReadonlySet<string> = new Set(['DRAIN_TIMEOUT', 'DRAIN_OVERRULED', 'MEMBER_GONE'])

/** How a removal ends. */
interface Limit extends Pick<PolicyData, 'onTimeout'> {
  /** When, in epoch milliseconds; null: not before the member is idle. */
  readonly until: number | null
}

/** Members that are taken out by one call. */
export interface Removal {
  readonly group: string
  readonly drains: readonly MemberDrain[]
  readonly ending: Ending
  /** Whether it ends at some time in any case. */
  readonly isBounded: boolean
  readonly run: Run
}

/** Told how the removal of a member ended. */
export type RemovalEnded = (
  drain: MemberDrain,
  member: MemberReport | undefined,
  error: DrainableError | undefined,
) => void

/**
 * Takes members out that their drains hold: a call of its own beside them, which is laid and dropped as the sets have it. One call
 * for the members of one address where each removal is a reload.
 */
export class Removals {
  readonly #spec: WorkSpec
  readonly #ended: RemovalEnded
  readonly #running = new Map<string, Removal>()

  constructor(spec: WorkSpec, ended: RemovalEnded) {
    this.#spec = spec
    this.#ended = ended
  }

  /** Begins what is due, goes on with what is under way, and drops the rest. */
  carryOut(drains: ReadonlyMap<string, MemberDrain>, wanted: Wanted, ending: Ending): void {
    const leaving = this.#leaving(drains, wanted)
    const readings = readingsOf(wanted.look.snapshot)
    const isOut = ({ ref }: MemberDrain): boolean => readings.get(refKey(ref))?.present !== true
    for (const removal of [...this.#running.values()]) {
      // A look can show what its call has done before the answer says it, and a reload that lost the holds of the others.
      const isDone = removal.drains.some(isOut)
      const isMeant = isDone || removal.drains.every((drain) => leaving.has(drain))
      if (!isMeant || !isSameEnding(removal.ending, ending)) this.drop(removal)
    }
    const due = [...leaving.keys()].filter(({ removal }) => removal === undefined)
    const groupOf = (drain: MemberDrain): string => this.#groupOf(drain, leaving.get(drain), ending)
    for (const [group, members] of Map.groupBy(due, groupOf)) {
      const known = this.#running.get(group)
      this.drop(known)
      const others = known?.drains.filter((drain) => leaving.has(drain)) ?? []
      this.#open(group, [...others, ...members], ending)
    }
  }

  /** The members stay as their drains hold them. */
  drop(removal: Removal | undefined): void {
    if (removal === undefined || this.#running.get(removal.group) !== removal) return
    this.#running.delete(removal.group)
    for (const drain of removal.drains) drain.leave(undefined)
    void removal.run.release()
  }

  /** Lets go of all. @returns the drains of the members that were taken out all the same */
  async end(): Promise<readonly MemberDrain[]> {
    const all = [...this.#running.values()]
    this.#running.clear()
    const taken = all.map(async ({ drains, run }) => {
      await run.release()
      const { members } = await run.done
      const out = new Set(members.filter(isRemoved).map(({ ref }) => refKey(ref)))
      return drains.filter(({ ref }) => out.has(refKey(ref)))
    })
    return (await Promise.all(taken)).flat()
  }

  /**
   * The members that may be taken out, and the machine of each: where each removal is a reload, once others of their address
   * are held too.
   */
  #leaving(
    drains: ReadonlyMap<string, MemberDrain>,
    { look, steps, down }: Wanted,
  ): ReadonlyMap<MemberDrain, string | undefined> {
    const { capabilities, policy } = this.#spec
    const readings = readingsOf(look.snapshot)
    const all = [...drains].flatMap(([key, drain]) => {
      const reading = readings.get(key)
      const isMeant = down.get(key)?.remove === true && drain.isOf(reading)
      return isMeant ? [{ key, drain, machine: machineOf(reading) }] : []
    })
    const reloads = capabilities.removalReloads === true
    const begins = all.filter(({ drain }) => reloads && drain.isBusy && !drain.mayGo)
    const awaited = new Set(begins.map(({ machine }) => machine))
    const leaving = all.filter(({ key, drain, machine }) => {
      const isPlanned = steps.get(key)?.change.kind === 'remove' && drain.leftFor === null
      const isDue = drain.mayGo && policy.clock.now() >= drain.backoff.notBefore
      return isPlanned && isDue && (machine === undefined || !awaited.has(machine))
    })
    return new Map(leaving.map(({ drain, machine }) => [drain, machine]))
  }

  #groupOf(drain: MemberDrain, machine: string | undefined, ending: Ending): string {
    const { until } = this.#limitOf([drain], ending)
    // After its deadline no member waits for another one.
    const isAlone = until === null && drain.deadline !== null
    const shares = this.#spec.capabilities.removalReloads === true && !isAlone
    return shares && machine !== undefined ? machine : refKey(drain.ref)
  }

  /** The first of their deadlines. A product that removes no member at work waits for its end where no drain is wanted. */
  #limitOf(drains: readonly MemberDrain[], ending: Ending): Limit {
    const { capabilities, policy } = this.#spec
    const never = { until: null, onTimeout: 'fail' } as const
    if (!ending.waits)
      return capabilities.removal === 'refuses' ? never : { until: 0, onTimeout: 'remove' }
    const until = Math.min(...drains.map(({ deadline }) => deadline ?? Infinity))
    if (until === Infinity) return never
    if (ending.onTimeout === 'remove' && removesAtWork(capabilities))
      return { until, onTimeout: 'remove' }
    if (drains.some(({ isLate }) => isLate)) return never
    const least = wallOf(policy.clock) + leastTime(policy.data, capabilities)
    const onTimeout = ending.onTimeout === 'terminate' ? 'terminate' : 'fail'
    return { until: Math.max(until, least), onTimeout }
  }

  #open(group: string, drains: readonly MemberDrain[], ending: Ending): void {
    const { provider, policy, subject, changed, fault } = this.#spec
    const { until, onTimeout } = this.#limitOf(drains, ending)
    const timeout = until === null ? null : Math.max(AT_ONCE, until - wallOf(policy.clock))
    // Their drains have asked the floor, say what happens, and have the ticket that an undo needs.
    const { data } = policy
    const resolved = {
      ...policy,
      data: { ...data, until: 'removed', keepReady: 0, timeout, onTimeout, escalateAfter: null },
      tickets: undefined,
      whole: {
        peer: 'the ticket store',
        save: async (_: unknown, limit: number): Promise<void> => {
          await Promise.all(drains.map((drain) => drain.save(limit)))
        },
      },
    } as const
    const told = new Set<DrainableError>()
    const claimedMembers = drains.flatMap((drain) => drain.claimed ?? [])
    const run = removalRun(provider, claimedMembers, resolved, subject, (event) => {
      if (event.type === 'terminated') policy.onEvent?.(event)
      if (event.type === 'fault' && isOfChange(run, event)) {
        told.add(event.error)
        fault(event.error)
      }
      changed(event.type === 'idle-lost')
    })
    const removal = { group, drains, ending, isBounded: until !== null, run }
    this.#running.set(group, removal)
    for (const drain of drains) drain.leave(removal)
    void this.#over(removal, told)
    changed(false)
  }

  /** @param told - the failures that were said */
  async #over(removal: Removal, told: ReadonlySet<DrainableError>): Promise<void> {
    const { members, error } = await removal.run.done
    const { capabilities, subject, fault } = this.#spec
    if (this.#running.get(removal.group) !== removal) return
    this.drop(removal)
    const reports = new Map(members.map((member) => [refKey(member.ref), member]))
    for (const drain of removal.drains) {
      const member = reports.get(refKey(drain.ref))
      const why = member?.error ?? error
      this.#ended(drain, member, why)
      // It was to go at its deadline, and the product removes no member at work: an idle one goes all the same.
      const isLate = member?.outcome === 'timeout' && removal.ending.onTimeout === 'remove'
      if (isLate && !removesAtWork(capabilities))
        fault(new DrainableError('UNSUPPORTED', `${subject}: ${KEEPS_WORK}`))
      if (why === undefined || told.has(why) || NO_FAULT.has(why.code)) continue
      fault(why)
    }
    this.#spec.changed(true)
  }
}

function isRemoved({ phase }: MemberReport): boolean {
  return phase === 'removed'
}

function machineOf({ address }: PresentReading): string | undefined {
  return address === undefined ? undefined : canonicalAddress(address)
}

/** Whether a change failed. That the balancer can't be read is seen by the loop's own looks. */
function isOfChange({ claimedMembers }: Run, { error }: FaultEvent): boolean {
  return claimedMembers.some(
    ({ ledger }) => ledger.loss === error || ledger.refusal?.error === error,
  )
}
