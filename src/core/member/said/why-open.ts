import { formatDuration } from '../../../provider/duration.js'
import { formatRef, isSameIdentity } from '../../../provider/member-ref.js'
import type { Why, WhyCode } from '../../../provider/report.js'
import type { Sight } from '../sight.js'
import { nameUntaken, untaken } from '../taken.js'
import { destination } from '../whose.js'

/** Takes one reason. */
export type Say = (code: WhyCode, text: string, more?: Partial<Why>) => void

/** Explains why a member is not open again. */
export function explainOpen(sight: Sight, now: number, say: Say): void {
  const { ref, claim, facts, ledger } = sight
  const reading = facts.last?.reading
  const name = formatRef(ref)
  if (explainVanished(sight, say)) return
  if (reading?.present !== true || facts.unread !== null) return
  const { goal } = claim
  const waited = formatDuration(now - (goal.kind === 'open' ? goal.since : claim.startedAt))
  const isOpen = goal.kind === 'open' && reading.own === destination(ledger, goal)
  const rest = isOpen ? untaken(reading, reading.own) : []
  for (const scope of rest) {
    say('not-in-force', `${nameUntaken(scope)}: it may still keep the member drained`, {
      scope: scope.scope,
      hint: 'if this lasts, check that this process can be reached and takes changes',
    })
  }
  if (rest.length > 0) return
  if (reading.own === 'unknown') explainUnknown(name, reading.hints, say)
  else if (reading.own !== 'ready' || ledger.late.length === 0) {
    say('settling', `${name} is '${reading.own}', health ${reading.health}, for ${waited}`, {
      hint: 'after maint it gets work only once the first health check has passed',
    })
  }
}

/** Explains a member that the newest look shows as absent or replaced. @returns whether it is */
export function explainVanished({ ref, facts: { last }, ledger }: Sight, say: Say): boolean {
  if (last === null) return false
  const { reading } = last
  if (reading.present && isSameIdentity(reading.identity, ledger.found?.identity)) return false
  const seen = reading.present ? 'is another member' : 'is absent'
  say(
    'unreadable',
    `${formatRef(ref)} ${seen} in the newest look; a later look decides whether it is gone`,
    {
      hint: 'nothing to do but wait',
    },
  )
  return true
}

/** Explains a state that the balancer contradicts itself about. */
export function explainUnknown(name: string, hints: readonly string[] | undefined, say: Say): void {
  const said = hints?.[0] === undefined ? '' : ` (${hints[0]})`
  say(
    'unreadable',
    `${name}: the balancer contradicts itself about the state of this member${said}, so it can't be called idle`,
    {
      hint: 'if this lasts, compare what the processes or units of the balancer report',
    },
  )
}
