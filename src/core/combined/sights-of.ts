import { emptyLedger, newClaim, NO_FACTS } from '../member/record.js'
import { type Sight } from '../member/sight.js'
import type { Prepared } from '../calls/run/run-spec.js'

/** The members of a drain that is prepared, before anything is known or changed: for its ticket. */
export function sightsOf({ claims }: Prepared): readonly Sight[] {
  return claims.map(({ ref, start, left }) => ({
    ref,
    facts: NO_FACTS,
    ledger: left?.ledger ?? emptyLedger(start.startedAt),
    claim: newClaim({ ...start, id: 0, view: 0 }),
    elsewhere: [],
  }))
}
