import { atLeast } from '../../../provider/admin-state.js'
import type { Draft } from '../draft.js'
import type { Input } from '../input.js'
import type { DrainState, FoundMember, Owned, OwnChange } from '../state.js'

/**
 * Takes over changes of other runs, except those that this run knows already. Two changes that ask for the same thing
 * are two changes.
 */
export function inherit(draft: Draft, input: Extract<Input, { type: 'inherit' }>): void {
  const { late, owned, held } = input
  const known = draft.state.hold.late
  if (owned !== undefined && draft.state.hold.changes.length === 0) {
    if (!maybeByUs(draft.state, owned.found)) draft.set({ found: owned.found })
    draft.hold({ changes: owned.changes, incarnations: owned.incarnations ?? null })
  }
  if (held !== undefined) takeOver(draft, held)
  const news = late.filter((entry) => !known.some((mine) => mine.change === entry.change))
  draft.hold({ late: [...known, ...news] })
}

/**
 * Whether an unanswered hold of ours may have made the state that an undo had found: then it is not a state to go
 * back to.
 */
function maybeByUs({ found, hold }: DrainState, theirs: FoundMember): boolean {
  if (found === null || found.own === 'unknown' || found.identity !== theirs.identity) return false
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
  if (found === null || found.identity !== held.found.identity) return
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
