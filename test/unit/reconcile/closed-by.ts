import type { Change, ChangeResult } from 'drainable'

/** Who closed a member that is not ready. `either`: nobody but the world itself can tell. */
type Who = 'us' | 'them' | 'either'

/** A change without an answer, or a member that was opened and not looked at since. */
interface Unsure {
  readonly to: string
  /** Only a look asked for later than this shows it. Infinity: its call is under way. */
  until: number
  /** Who has to look. */
  readonly by: Set<object>
}

/** For how long a change without an answer may still be carried out, in milliseconds: `lateBound` of the world. */
const LATE = 300
const ANYBODY = {}

/**
 * Who closed which member, as the world knows it, and where a process can't know: an operator who closes a member as we
 * had it, unseen in between, and one who does what a hold of ours without an answer would do, look like us.
 */
export class ClosedBy {
  readonly #closed = new Map<string, Who>()
  readonly #unsure = new Map<string, Unsure[]>()
  /** What we had in maint since it was open last: a state file from then may bring that back, also after we lowered it. */
  readonly #raised = new Set<string>()

  get(member: string): Who | undefined {
    return this.#closed.get(member)
  }

  /** A change of ours is in place. */
  byUs(member: string, to: string): void {
    if (to === 'maint') this.#raised.add(member)
    if (this.#closed.get(member) !== 'them') this.#closed.set(member, 'us')
  }

  opened(member: string): void {
    this.#raised.delete(member)
    this.#closed.delete(member)
  }

  /** An operator or a reload opens what may be ours: it is unknown until every process has looked. */
  openedBehind(member: string, before: string, at: number, processes: Iterable<object>): void {
    this.loweredBehind(member, before, at, processes)
    this.#closed.delete(member)
  }

  /** The same where it stays closed, in a lower state. */
  loweredBehind(member: string, before: string, at: number, processes: Iterable<object>): void {
    const who = this.#closed.get(member)
    if (who === 'them' || who === undefined) return
    this.#add(member, { to: before, until: at, by: new Set(processes) })
  }

  byThem(member: string, to: string): void {
    // What we had in maint may be in drain again, by a state file from before the raise.
    const looksLikeUs = (this.#unsure.get(member) ?? []).some(
      (one) => one.to === to || one.to === 'maint' || this.#raised.has(member),
    )
    this.#closed.set(member, looksLikeUs ? 'either' : 'them')
  }

  /**
   * A hold leaves, an undo on its way to ready, or an addition. Without an answer a hold may still come, and an undo is unseen: a
   * member that is closed again as it was looks as if the undo had not come. An addition can have ended in maint, before its opening.
   *
   * @returns told its answer
   */
  sent(process: object, change: Change): (result: ChangeResult | undefined, now: number) => void {
    const to = leavesIt(change)
    if (to === undefined) return () => undefined
    const { member } = change.ref
    const one: Unsure = { to, until: Infinity, by: new Set([process]) }
    this.#add(member, one)
    return (result, now) => {
      if (result === undefined || result.status === 'unknown') one.until = now + LATE
      else this.#drop(member, one)
    }
  }

  /** A process has seen these members by a look that was asked for at that moment. */
  seen(process: object, members: Iterable<string>, askedAt: number): void {
    for (const member of members)
      for (const one of this.#unsure.get(member) ?? []) {
        if (askedAt <= one.until) continue
        one.by.delete(process)
        one.by.delete(ANYBODY)
        if (one.by.size === 0) this.#drop(member, one)
      }
  }

  /** It sees nothing any more: the next process looks in its place. What it had sent ends with time. */
  died(process: object, now: number): void {
    for (const one of [...this.#unsure.values()].flat()) {
      if (!one.by.delete(process)) continue
      one.by.add(ANYBODY)
      if (one.until === Infinity) one.until = now + LATE
    }
  }

  #add(member: string, one: Unsure): void {
    this.#unsure.set(member, [...(this.#unsure.get(member) ?? []), one])
  }

  #drop(member: string, one: Unsure): void {
    const left = (this.#unsure.get(member) ?? []).filter((other) => other !== one)
    this.#unsure.set(member, left)
  }
}

/** The state that a change without an answer may have left a member in. */
function leavesIt(change: Change): string | undefined {
  if (change.kind === 'hold') return change.to
  if (change.kind === 'restore') return change.expect
  return change.kind === 'add' ? 'maint' : undefined
}
