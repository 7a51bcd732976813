import { wallOf } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { printable } from '../../provider/quote.js'
import type { Why } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import type { DrainState } from '../machine/state.js'
import { emitOn } from './balancer/emitters.js'
import type { Members } from './members.js'
import type { Prepared, RunSpec } from './run-spec.js'
import { schedulerOf, type Scheduler } from './look/scheduler.js'
import type { Sender } from './sender.js'
import { Alarm } from './look/timer.js'

/** The state that all parts of one run share. */
export class RunState {
  readonly spec: RunSpec
  readonly scheduler: Scheduler
  readonly startedAt: number
  /** The only timer of the run, for its deadline. */
  readonly alarm: Alarm
  life: 'preparing' | 'looking' | 'held' | 'released' = 'preparing'
  /** Whether the run has left the runs of its balancer. */
  left = false
  /** Fires when the run lets go; an undo after that has a new one. */
  stop = new AbortController()
  /** Ends the run with an exception, because nothing else would. */
  broken: (thrown: unknown) => void = () => undefined
  /** Until when the preparation can go on. */
  prepareUntil: number
  /** Whether the preparation ended because its time had passed. */
  isTooLate = false
  /** Undefined until the run is prepared, like the two below. */
  members: Members | undefined
  /** The error of the last try to prepare. */
  unprepared: DrainableError | undefined
  sender: Sender | undefined
  keeper: Prepared['keeper']
  /** The last time that the clock returned. */
  #told: number

  constructor(spec: RunSpec) {
    this.spec = spec
    this.scheduler = schedulerOf(spec.provider, spec.clock)
    this.#told = spec.clock.now()
    this.startedAt = spec.startedAt ?? this.#told
    this.alarm = new Alarm(spec.clock, (thrown) => this.broken(thrown))
    this.prepareUntil = spec.timeout === null ? Infinity : this.startedAt + spec.timeout
  }

  now(): number {
    return (this.#told = this.spec.clock.now())
  }

  /** Runs a part that no caller waits for: an exception or rejection ends the run. */
  guard(part: () => unknown): void {
    void (async () => {
      try {
        await part()
      } catch (thrown) {
        this.broken(thrown)
      }
    })()
  }

  /** The present time for events, even if the clock throws. */
  iso(): string {
    try {
      return new Date(wallOf(this.spec.clock)).toISOString()
    } catch {
      return new Date().toISOString()
    }
  }

  /** Milliseconds since a time, for a report; if the clock throws, up to its last time. */
  since(moment: number): number {
    try {
      return Math.round(this.now() - moment)
    } catch {
      return Math.round(this.#told - moment)
    }
  }

  /** A method, because the value can change during an await. */
  isReleased(): boolean {
    return this.life === 'released'
  }

  get states(): readonly DrainState[] {
    return this.members?.all ?? []
  }

  /** The named members; further members can still be found. */
  get named(): readonly MemberRef[] {
    const { refs, resumed } = this.spec
    return refs ?? resumed?.members.map(({ ref }) => ref) ?? []
  }

  /** Why its members have not reached the goal, or why the run can't be prepared yet. */
  why(): readonly Why[] {
    const why = this.whyTicket
    const [ref = { pool: '*', member: '*' }] = this.members?.refs ?? this.named
    return [...(why === undefined ? [] : [{ ...why, ref }]), ...this.#whyMembers()]
  }

  /** What is wrong with its ticket. */
  get whyTicket(): Omit<Why, 'ref'> | undefined {
    return (this.keeper ?? this.spec.keeper()).why
  }

  #whyMembers(): readonly Why[] {
    if (this.members !== undefined) return this.members.why()
    if (this.unprepared === undefined || this.life !== 'preparing') return []
    const refs = this.named.length > 0 ? this.named : [{ pool: '*', member: '*' }]
    const changed = this.spec.resumed === undefined ? '; nothing was changed yet' : ''
    const text = `the balancer can't be read: ${printable(this.unprepared.message)}${changed}`
    const hint = 'the read is retried; members in a ticket stay held as they were left'
    return refs.map((ref) => ({ code: 'unreadable', ref, text, hint }))
  }

  emit(event: DrainEvent, last = false): void {
    if (this.isReleased() && !last) return
    this.#hand(event)
  }

  /** Emits a failure that does not end the run, also after the release. */
  fault(error: DrainableError): void {
    const ref = error.ref ?? this.members?.refs[0] ?? this.named[0]
    if (ref === undefined) return
    this.#hand({ type: 'fault', at: this.iso(), ref, error })
  }

  #hand(event: DrainEvent): void {
    this.spec.emit(event)
    emitOn(this.spec.provider, event)
  }
}
