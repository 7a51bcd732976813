import type { AdminState } from 'drainable'
import type { SentChange } from '../judge/sent-change.js'
import type { Member } from './member.js'

/** What a drain finds at its first hold that changes anything is what its undo goes back to. */
export function noteBase(sent: SentChange, member: Member, changes: boolean): void {
  const { authors, knownUntil, sentAt, alike } = sent
  // what another drain holds may be opened by that one before this one changes anything
  const own = member.own === 'ready' || (member.setter.by !== 'library' && !alike)
  const clear = authors.size === 1 && own && member.foreignAt < knownUntil
  for (const author of authors) {
    // what a reload forgets after a first hold went out is still a wish of another client, and gone back to
    const steady = member.foreignAt < (member.begun.get(author) ?? Infinity)
    const again = sentAt >= (member.undoneAt.get(author) ?? Infinity)
    if (!member.bases.has(author) || (changes && (again || !member.changedBy.has(author))))
      member.bases.set(author, clear && steady ? member.own : 'unclear')
    if (!changes) continue
    member.changedBy.add(author)
    if (again) member.undoneAt.delete(author)
  }
}

/**
 * A drain is taken back by itself, to what it was before: that is over. Where several can have sent it, it may have
 * been any of them. Whether a drain has seen that a `ready()` made the member so can't be told.
 */
export function noteUndo(
  { authors, byReady }: SentChange,
  member: Member,
  to: AdminState,
  now: number,
): void {
  for (const [author, base] of [...member.bases]) {
    // what ready() opens further than a drain found it is another client's wish
    if (byReady && !authors.has(author)) member.bases.set(author, 'unclear')
    else if (authors.has(author) && (base === to || base === 'unclear')) undone(member, author, now)
  }
}

/** It goes back to what its ticket says, also where a reload has forgotten it since. */
export function resumed(member: Member, author: string): void {
  if (!member.undoneAt.delete(author)) return
  member.bases.set(author, 'unclear')
  member.changedBy.add(author)
}

/** What the drain changes from now on it changes anew. */
export function undone(member: Member, author: string, now: number): void {
  member.undoneAt.set(author, now)
  member.begun.delete(author)
}
