import { atLeast } from '../../../provider/admin-state.js'
import type { Change } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import type { Input } from '../input.js'
import { sameChange } from './changes.js'
import type { DrainState, FoundMember, LateChange, Owned, OwnChange } from '../state.js'
import { isSameIdentity } from '../../../provider/member-ref.js'

/** Changes of other runs, without those that this one knows of already. */
export function inherit(draft: Draft, input: Extract<Input, { type: 'inherit' }>): void {
  const { late, owned, held } = input
  if (owned !== undefined && draft.state.hold.changes.length === 0) {
    if (!maybeByUs(draft.state, owned.found)) draft.set({ found: owned.found })
    draft.hold({ changes: owned.changes, incarnations: owned.incarnations ?? null })
  }
  if (held !== undefined) takeOver(draft, held)
  draft.hold({ late: late.reduce(withInherited, draft.state.hold.late) })
}

/**
 * Another change that asks for the same is another one, but one entry stands for both: drains that go on by steps read
 * theirs from their tickets, as other objects each time, and would hand each other more of them with every step.
 */
function withInherited(known: readonly LateChange[], entry: LateChange): readonly LateChange[] {
  if (known.some(({ change }) => change === entry.change)) return known
  const twin = known.find((mine) => isAlike(mine, entry))
  if (twin === undefined) return [...known, entry]
  return known.map((mine) => (mine === twin ? together(mine, entry) : mine))
}

function isAlike(one: LateChange, other: LateChange): boolean {
  return (
    sameChange(one.change, other.change) &&
    identityOf(one.change) === identityOf(other.change) &&
    one.refused === other.refused &&
    one.sight === other.sight &&
    one.underWay === other.underWay
  )
}

function identityOf(change: Change): string | undefined {
  return change.kind === 'add' ? undefined : change.identity
}

/** Either may have brought about an effect that shows, and the other is still to come: `shared`. */
function together(one: LateChange, other: LateChange): LateChange {
  const seen = one.lackedAt === null ? other : one
  const { lackedAt, before } = seen
  return {
    ...one,
    lostAt: Math.max(one.lostAt, other.lostAt),
    until: one.until === null || other.until === null ? null : Math.max(one.until, other.until),
    lackedAt,
    ...(before === undefined ? {} : { before }),
    shared: true,
  }
}

/**
 * Whether an unanswered hold of ours may have made the state that an undo had found: then it is not a state to go
 * back to.
 */
function maybeByUs({ found, hold }: DrainState, theirs: FoundMember): boolean {
  if (found === null || found.own === 'unknown') return false
  if (!isSameIdentity(found.identity, theirs.identity)) return false
  const before = found.own
  return hold.late.some(
    ({ change }) =>
      change.kind === 'hold' && change.to === theirs.own && !atLeast(before, change.to),
  )
}

/**
 * Takes over the changes of a drain that this undo ends, and undoes them too: back to the state before both,
 * whichever came first.
 */
function takeOver(draft: Draft, held: Owned): void {
  const { found, hold } = draft.state
  if (found === null || !isSameIdentity(found.identity, held.found.identity)) return
  const news = held.changes.filter((change) => !hold.changes.some((mine) => isSame(mine, change)))
  if (news.length === 0) return
  if (isBelow(held.found, found)) draft.set({ found: held.found })
  const changes = [...hold.changes, ...news].sort((one, other) => one.at - other.at)
  const theirsIsLast = news.some((change) => change === changes.at(-1))
  const { incarnations = null } = theirsIsLast ? held : hold
  draft.hold({ changes, incarnations })
}

/** Each drain finds the state that the previous one set, so the more open of the two states was there first. */
function isBelow({ own }: FoundMember, than: FoundMember): boolean {
  if (own === 'unknown' || than.own === own) return false
  return own === 'ready' || atLeast(than.own, own)
}

function isSame(one: OwnChange, other: OwnChange): boolean {
  return (
    one.kind === other.kind &&
    one.to === other.to &&
    one.state === other.state &&
    one.at === other.at
  )
}
