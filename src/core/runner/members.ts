import type { Change, MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import type { DrainReport, Why } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import { sameChange, sentChange } from '../machine/ledger/changes.js'
import type { Effect, Input } from '../machine/input.js'
import type { MachinePolicy } from '../machine/policy.js'
import { isOutdated } from '../machine/rough.js'
import { ownOf, type DrainState } from '../machine/state.js'
import { expectScopes } from '../machine/scopes.js'
import { absorbOnly, transition } from '../machine/transition.js'
import { explain } from '../machine/why.js'
import type { Denial, Floor } from './balancer/floor.js'
import type { Look, SeenLook } from './look/look.js'
import { readingOf } from './look/readings.js'
import { reportAll, reportMember } from './report.js'

type WithoutStamp<T> = T extends unknown ? Omit<T, 'at' | 'wall'> : never
/** An input without its time. */
export type FreeInput = WithoutStamp<Input>

/** One change to send, and its member. */
export interface MemberChange {
  readonly key: string
  readonly change: Change
}

/** The receivers of effects. */
export interface MembersOptions {
  readonly policy: MachinePolicy
  readonly now: () => number
  /** Epoch milliseconds minus the run's clock. */
  readonly wallOffset: () => number
  readonly floor: () => Floor
  readonly emit: (event: DrainEvent) => void
  readonly check: (ref: MemberRef) => void
  readonly lost: (error: DrainableError) => void
  /** Whether another run of this process may open the member. */
  readonly mayOpen: (ref: MemberRef) => boolean
  /** One step: only these changes are sent, others are announced. */
  readonly announced: ReadonlyMap<string, Change> | undefined
}

/** The members of one run: passes each input through the machine, and its effects to their receivers. */
export class Members {
  readonly #options: MembersOptions
  readonly #states: Map<string, DrainState>
  #look: SeenLook | undefined
  /** Whether a change was announced instead of sent. */
  announcing = false
  /** Whether a first hold waits for the next look, because the last one did not show enough to the floor. */
  isUnasked = false

  constructor(options: MembersOptions, states: readonly DrainState[]) {
    this.#options = options
    this.#states = new Map(states.map((state) => [refKey(state.ref), state]))
  }

  get policy(): MachinePolicy {
    return this.#options.policy
  }

  get all(): readonly DrainState[] {
    return [...this.#states.values()]
  }

  get keys(): readonly string[] {
    return [...this.#states.keys()]
  }

  get refs(): readonly MemberRef[] {
    return this.all.map((state) => state.ref)
  }

  get(key: string): DrainState | undefined {
    return this.#states.get(key)
  }

  /** Replaces the present states: used by a step that starts its proof anew. */
  replace(change: (state: DrainState) => DrainState): void {
    for (const [key, state] of this.#states) this.#states.set(key, change(state))
  }

  /** Takes a look in for every member; returns the required changes, to send them in one call. */
  see(look: Look): readonly MemberChange[] {
    if (look.error === undefined) this.#look = look
    this.isUnasked = false
    return this.keys.flatMap((key) => {
      const state = this.#states.get(key)
      return state === undefined ? [] : this.take(key, this.inputOf(look, state))
    })
  }

  /** Takes only the list of processes from a look that changes of other runs have made stale. */
  expect({ snapshot }: Look): void {
    if (snapshot === undefined) return
    this.replace((state) => ({
      ...state,
      proof: expectScopes(state.proof, readingOf(snapshot, state.ref).scopes),
    }))
  }

  /** The input of one member from a look. */
  inputOf(look: Look, state: DrainState): FreeInput {
    const { askedAt, took } = look
    if (look.error !== undefined) return { type: 'unreadable', error: look.error, askedAt }
    const { snapshot } = look
    const reading = readingOf(snapshot, state.ref)
    const { ended } = snapshot
    const floor =
      state.hold.floor === 'granted' ? this.#options.floor().broken(reading, look) : undefined
    return {
      type: 'reading',
      reading,
      askedAt,
      took,
      random: Math.random(),
      ...(this.#options.mayOpen(state.ref) ? { mayOpen: true } : {}),
      ...(ended === undefined ? {} : { ended }),
      ...(floor === undefined ? {} : { floor }),
    }
  }

  /** Takes one input of one member. */
  take(key: string, input: FreeInput): readonly MemberChange[] {
    const state = this.#states.get(key)
    if (state === undefined) return []
    const stamped = this.stamp(input)
    const step = transition(state, stamped, this.policy)
    const wish = step.effects.find((effect) => effect.type === 'apply')
    if (wish !== undefined && !this.#maySend(key, wish.change))
      return this.#announce(key, absorbOnly(state, stamped, this.policy), wish)
    this.#states.set(key, step.state)
    return step.effects.flatMap((effect) => this.#effect(key, effect))
  }

  /** Recalls changes that must not be sent any more by the newest reading; returns the changes to send instead. */
  recall(key: string): readonly MemberChange[] {
    const state = this.#states.get(key)
    const outdated = state !== undefined && isOutdated(state, this.policy)
    return outdated ? this.take(key, { type: 'recalled' }) : []
  }

  stamp(input: FreeInput): Input {
    const at = this.#options.now()
    return { ...input, at, wall: at + this.#options.wallOffset() }
  }

  #maySend(key: string, change: Change): boolean {
    const { announced } = this.#options
    const known = announced?.get(key)
    return announced === undefined || (known !== undefined && sameChange(known, change))
  }

  /**
   * Announces a change: the ticket with the change is kept before anything happens, and the next step decides again.
   */
  #announce(
    key: string,
    state: DrainState,
    { change, first }: Extract<Effect, { type: 'apply' }>,
  ): readonly MemberChange[] {
    this.#states.set(key, state)
    const denied = first ? this.#ask(state) : undefined
    if (denied !== undefined) return this.take(key, { type: 'denied', ...denied })
    this.announcing = true
    this.#states.set(key, {
      ...state,
      hold: { ...state.hold, pending: sentChange(change, ownOf(state), state.hold.late) },
    })
    return []
  }

  /** Why the floor refuses a first hold. */
  #ask(state: DrainState): Denial | undefined {
    const reading = state.last?.reading
    if (reading === undefined || this.#look === undefined) return undefined
    const denied = this.#options.floor().ask(reading, this.#look)
    if (denied?.isFinal === false) this.isUnasked = true
    return denied
  }

  #effect(key: string, effect: Effect): readonly MemberChange[] {
    switch (effect.type) {
      case 'emit':
        this.#options.emit(effect.event)
        return []
      case 'check': {
        const ref = this.#states.get(key)?.ref
        if (ref !== undefined) this.#options.check(ref)
        return []
      }
      case 'lost':
        this.#options.lost(effect.error)
        return []
      case 'apply': {
        const state = this.#states.get(key)
        const denied = effect.first && state !== undefined ? this.#ask(state) : undefined
        if (denied === undefined) return [{ key, change: effect.change }]
        return this.take(key, { type: 'denied', ...denied })
      }
      default:
        return effect satisfies never
    }
  }

  report(startedAt: number): DrainReport {
    const now = this.#options.now()
    const offset = this.#options.wallOffset()
    const members = this.all.map((state) => reportMember(state, this.policy, now, offset))
    return reportAll(members, Math.round(now - startedAt))
  }

  why(): readonly Why[] {
    const now = this.#options.now()
    const offset = this.#options.wallOffset()
    return this.all.flatMap((state) => explain(state, this.policy, now, offset))
  }
}
