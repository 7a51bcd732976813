import type { AdminState, LoadScope, MemberRef } from '../../provider/contract.js'
import { isSameIdentity } from '../../provider/member-ref.js'
import {
  NO_FACTS,
  type Claim,
  type Facts,
  type Incarnations,
  type Ledger,
  type Level,
  type MemberRecord,
} from './record.js'

/** A member as one claim sees it. */
export interface ClaimedMember {
  readonly ref: MemberRef
  readonly facts: Facts
  readonly ledger: Ledger
  readonly claim: Claim
  /** Processes that only another view lists, and that are at work for the member. */
  readonly elsewhere: readonly LoadScope[]
}

/** A member as one of its claims sees it. */
export function claimedOf(
  record: Pick<MemberRecord, 'ref' | 'views' | 'ledger'>,
  claim: Claim,
): ClaimedMember {
  const { ref, views, ledger } = record
  const facts = views.get(claim.view) ?? NO_FACTS
  if (views.size < 2) return { ref, facts, ledger, claim, elsewhere: NOWHERE }
  return {
    ref,
    facts: withNewest(record, facts),
    ledger,
    claim,
    elsewhere: [...views.values()]
      .flatMap(({ processes }) => [...processes.values()])
      .filter(({ scope, state, active, queued }) => {
        const isAtWork = state === 'read' && active + queued > 0
        return isAtWork && !facts.processes.has(scope)
      }),
  }
}

const NOWHERE: readonly LoadScope[] = []

/**
 * Work and processes as its own view has read them; the state as the newest look of any view shows it, and the incarnations that
 * say whose it is.
 */
function withNewest({ views, ledger }: Pick<MemberRecord, 'views' | 'ledger'>, own: Facts): Facts {
  const facts = { ...own, incarnations: incarnationsOf(views) }
  const { last } = own
  if (last?.reading.present !== true) return facts
  let newest = last
  for (const { last: other } of views.values()) {
    if (other === null || other.askedAt <= newest.askedAt || !other.reading.present) continue
    const { own: state, identity } = other.reading
    if (state !== 'unknown' && isSameIdentity(identity, ledger.found?.identity)) newest = other
  }
  if (newest === last || !newest.reading.present) return facts
  return { ...facts, last: { ...last, reading: { ...last.reading, own: newest.reading.own } } }
}

/** Every process that any view lists, each by the newest look with it. */
export function incarnationsOf(views: MemberRecord['views']): Incarnations {
  const all = new Map<string, string>()
  for (const { incarnations } of [...views.values()].sort(byLook))
    for (const [name, one] of incarnations) if (one !== '' || !all.has(name)) all.set(name, one)
  return all
}

function byLook({ last: one }: Facts, { last: other }: Facts): number {
  return (one?.askedAt ?? -Infinity) - (other?.askedAt ?? -Infinity)
}

/** The state that a process must have taken to be in force: the wanted one; for a watch, `drain`. */
export function neededState({ goal, wish }: Pick<Claim, 'goal' | 'wish'>): Level {
  return goal.kind === 'watch' ? 'drain' : wish
}

/** The own state last read; `unknown` if there is none. */
export function ownOf({ facts: { last } }: Pick<ClaimedMember, 'facts'>): AdminState | 'unknown' {
  return last?.reading.present === true ? last.reading.own : 'unknown'
}

/** Whether a look since our last change has shown it open. */
export function isSeenOpen(claimed: Pick<ClaimedMember, 'facts' | 'ledger'>): boolean {
  const { last } = claimed.facts
  return ownOf(claimed) === 'ready' && last !== null && last.askedAt > claimed.ledger.answeredAt
}

/** Whether it is in its pool no more: looks agree on that, and nothing has its name. */
export function isSeenAbsent({ claim, facts }: Pick<ClaimedMember, 'claim' | 'facts'>): boolean {
  return claim.phase === 'removed' && facts.last?.reading.present === false
}

/** Whether the newest reading shows the member itself: an absent or replaced member has no state. */
export function readsMember({
  facts: { last },
  ledger,
}: Pick<ClaimedMember, 'facts' | 'ledger'>): boolean {
  return (
    last?.reading.present === true && isSameIdentity(last.reading.identity, ledger.found?.identity)
  )
}

/** Names what may have set a state that is not ours: the setter that the product names, or another client. */
export function setterOf({ facts: { last } }: Pick<ClaimedMember, 'facts'>): string {
  const named = last?.reading.present === true ? last.reading.setBy : undefined
  return named === undefined ? 'another client' : `${named}, or another client`
}

/** The newest reading of each process that can be read. */
export function readScopes({
  claim: { proof },
}: Pick<ClaimedMember, 'claim'>): readonly LoadScope[] {
  return [...proof.scopes.values()].flatMap(({ last }) => (last.state === 'read' ? [last] : []))
}

/** In flight and queued over every process, as last read. */
export function loadOf(claimed: Pick<ClaimedMember, 'claim'>): number {
  return readScopes(claimed).reduce((sum, { active, queued }) => sum + active + queued, 0)
}

/** Whether any process is not among those that have a state: it can have forgotten it. */
export function isAnother(incarnations: Incarnations, told: Incarnations | null): boolean {
  if (told === null) return false
  return [...incarnations].some(([name, one]) =>
    one === '' ? !told.has(name) : told.get(name) !== one,
  )
}
