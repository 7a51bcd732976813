import type { MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { isClosed } from '../../provider/thrown.js'
import type { Contest } from './balancer/contest.js'
import { isOurs } from './balancer/hand-over.js'
import type { Look } from './look/look.js'
import { pauseOf } from './look/pause-of.js'
import type { RunState } from './run-state.js'
import type { Subscription } from './look/scheduler.js'

/** The callbacks of looks. */
export interface LookingOptions {
  /** Called when a look was taken in. */
  readonly seen: () => void
  /** Called when the provider was closed: no look will ever come again. */
  readonly closed: (error: DrainableError) => void
  /** Called when something threw while a look was taken in. */
  readonly broken: (thrown: unknown) => void
}

/** The looks of one run: the members they are for, how often they come, and the changes they require. */
export class Looking {
  readonly #run: RunState
  readonly #contest: Contest
  readonly #options: LookingOptions
  #seat: Subscription | undefined
  /** Looks that failed in a row. */
  #failures = 0
  /** Whether the caller's action runs. */
  acting = false

  constructor(run: RunState, contest: Contest, options: LookingOptions) {
    this.#run = run
    this.#contest = contest
    this.#options = options
  }

  /** Takes a place at the scheduler, instead of the one before. */
  sit(background: boolean): void {
    this.#seat?.leave()
    this.#seat = this.#run.scheduler.join({
      refs: () => this.refs(),
      background,
      see: (look) => this.see(look),
    })
  }

  /** Requests the next look at once. */
  soon(): void {
    this.#seat?.next(0)
  }

  leave(): void {
    this.#seat?.leave()
    this.#seat = undefined
  }

  /** Takes a look in. Any exception on the way ends the run, because nothing else would. */
  see(look: Look): void {
    try {
      this.#take(look)
    } catch (thrown) {
      this.#options.broken(thrown)
    }
  }

  /** Passes the look to every member; the required changes go out in one call. */
  #take(look: Look): void {
    const { members, sender } = this.#run
    if (members === undefined || this.#run.isReleased()) return
    if (look.error !== undefined && isClosed(look.error)) {
      this.#options.closed(look.error)
      return
    }
    this.#failures = look.error === undefined ? 0 : this.#failures + 1
    const before = this.#run.states.map(({ hold }) => hold.changes)
    sender?.send(members.see(look))
    const learnt = this.#run.states.some(({ hold }, i) => hold.changes !== before[i])
    // A drain that is over or undone may not write its ticket again by itself, and a run that continues from it must
    // know which states are ours.
    const last = this.#run.life === 'held' || this.#run.states.some(({ goal }) => isOurs(goal))
    if (learnt && last) void sender?.save()
    else sender?.saveAgain()
    this.#contest.tell(look.askedAt)
    this.#options.seen()
    this.#seat?.next(members.isUnasked ? 0 : this.#pause())
  }

  /** The members, and, while the floor matters, other members of their pools that this process holds. */
  refs(): readonly MemberRef[] {
    const { members, states, spec } = this.#run
    const refs = members?.refs ?? []
    const asks = states.some(({ hold }) => hold.floor !== 'kept')
    if (!asks || spec.side !== 'drain' || spec.keepReady === 0) return refs
    return [...refs, ...this.#contest.floor.companions(refs)]
  }

  #pause(): number {
    const { states, members, scheduler, life, spec } = this.#run
    return pauseOf({
      states,
      policy: members?.policy,
      scheduler,
      now: this.#run.now(),
      failures: this.#failures,
      held: life === 'held',
      acting: this.acting,
      pace: spec.pace,
    })
  }
}
