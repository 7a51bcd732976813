import { DrainableError } from '../../provider/error.js'
import type { DrainState } from '../machine/state.js'
import { LAST_LOOK } from './look/call.js'
import type { Looking } from './looking.js'
import type { RunState } from './run-state.js'

/** A balancer that has not answered for this long at the deadline counts as unreadable, in milliseconds. */
const SILENCE = 5_000

/** Takes one last look at the deadline; if it does not come, the end rests on the readings before. */
export class LastLook {
  readonly #run: RunState
  readonly #looking: Looking
  readonly #changed: () => void

  /** @param changed - called when members learnt that the look did not come */
  constructor(run: RunState, looking: Looking, changed: () => void) {
    this.#run = run
    this.#looking = looking
    this.#changed = changed
  }

  /** Sets the alarm for the first time when a member must have its outcome. */
  arm(): void {
    const { states, alarm } = this.#run
    const moments = states.flatMap((state) => momentsOf(state, this.#run.now()))
    if (moments.length === 0) alarm.clear()
    else alarm.set(Math.min(...moments), () => this.#ask())
  }

  /**
   * Called when other runs became idle after the last look at these members: another look shows whether they are
   * still idle.
   */
  doubt(): void {
    const { members } = this.#run
    for (const key of members?.keys ?? []) members?.take(key, { type: 'doubt' })
    this.again()
  }

  /** Called when the end was dropped: the next look decides, and the deadline counts again. */
  again(): void {
    this.arm()
    this.#looking.soon()
  }

  #ask(): void {
    if (this.#giveUpUndo()) this.#changed()
    if (this.#run.isReleased()) return
    this.#looking.soon()
    const { cost, floor } = this.#run.scheduler
    const patience = LAST_LOOK + 2 * cost + floor // a large table takes its time to read
    this.#run.alarm.set(this.#run.now() + patience, () => {
      this.#giveUpUndo()
      this.#overdue(patience)
      if (!this.#run.isReleased()) this.arm()
    })
  }

  /** Stops waiting, on abort, for the answer to a change that opens a member; returns whether there was one. */
  #giveUpUndo(): boolean {
    const { members, sender, spec } = this.#run
    const error = new DrainableError(
      'CALL_TIMEOUT',
      'apply: no answer in the time allowed after an abort',
      {
        provider: spec.provider.name,
      },
    )
    let any = false
    for (const key of members?.keys ?? []) {
      const state = members?.get(key)
      if (state === undefined || !waitedEnough(state, this.#run.now())) continue
      any = true
      members?.take(key, { type: 'overdue', error, silent: false })
      sender?.giveUp(state, error)
    }
    return any
  }

  #overdue(patience: number): void {
    const { members, spec } = this.#run
    if (members === undefined) return
    const error = new DrainableError(
      'CALL_TIMEOUT',
      `the balancer gave no answer to the last look within ${Math.round(patience)} ms`,
      { provider: spec.provider.name },
    )
    for (const key of members.keys) {
      const state = members.get(key)
      if (state !== undefined) this.#overdueMember(key, state, error)
    }
    this.#changed()
  }

  #overdueMember(key: string, state: DrainState, error: DrainableError): void {
    const { members, sender } = this.#run
    const { goal, ending } = state
    const deadline = goal.kind === 'open' ? goal.until : state.deadline
    if (ending.ended !== null) return
    if (ending.terminateUntil !== null && this.#run.now() < ending.terminateUntil) return
    if (deadline === null || this.#run.now() < deadline) {
      if (goal.kind !== 'open') return
    } else sender?.giveUp(state, error)
    const silent = this.#isSilent(state, deadline ?? this.#run.now())
    sender?.send(members?.take(key, { type: 'overdue', error, silent }) ?? [])
  }

  /** Whether the balancer had not answered for a long time already at the deadline. */
  #isSilent({ last }: DrainState, deadline: number): boolean {
    const { cost, floor } = this.#run.scheduler
    return last === null || deadline - last.at > Math.max(SILENCE, 3 * cost + floor)
  }
}

function waitedEnough({ goal, hold }: DrainState, now: number): boolean {
  if (goal.kind !== 'open' || goal.lateUntil === null || now < goal.lateUntil) return false
  return hold.pending?.change.kind === 'restore'
}

/** The latest times by which something must have happened for a member. */
function momentsOf(state: DrainState, now: number): readonly number[] {
  const { ending, goal, deadline } = state
  if (ending.ended !== null) return []
  if (goal.kind === 'watch') return []
  const wanted =
    goal.kind === 'open' ? [goal.until, goal.lateUntil] : [ending.terminateUntil ?? deadline]
  return wanted.flatMap((moment) => (moment === null ? [] : [Math.max(moment, now)]))
}
