import type { PresentReading, Reading } from '../../provider/contract.js'
import type { Draft, Open } from './draft.js'
import { endGone, endUncounted, goneForCertain } from './gone.js'
import { loseIdle, prove, unverifiedBy } from './idle.js'
import { inWishedState, isClosed, marksOf, stillIdle, workSeen } from './proof/prove.js'

/** A claim that only looks; its phases follow the changes of others. */
export function decideWatch(draft: Draft, claim: Open): void {
  const { last, unread } = draft.claimed(claim).facts
  if (claim.ending.ended !== null || last === null || unread !== null) return
  const there = goneForCertain(draft, claim)
  if (there === 'replaced') endGone(draft, claim, there)
  else if (there === 'absent') removed(draft, claim, last.reading)
  else if (there === 'here' && last.reading.present) present(draft, claim, last.reading)
}

function present(draft: Draft, claim: Open, reading: PresentReading): void {
  const unverified = unverifiedBy(claim, reading)
  // Once the member is absent, no reading shows this any more.
  if (claim.phase !== 'idle') draft.proof(claim, { unverified })
  if (inWishedState(draft.claimed(claim))) {
    follow(draft, claim, { sealed: isClosed(claim, reading), unverified })
    return
  }
  draft.proof(claim, { proof: null, verdict: null, sealed: false })
  draft.phase(claim, 'active')
}

/**
 * Handles a member that another client removed. If the product counts work after a removal, waits for its processes,
 * so that idle is reported before the end: the server behind it may be about to be stopped.
 */
function removed(draft: Draft, claim: Open, reading: Reading): void {
  endUncounted(draft, claim)
  const { phase, proof } = claim
  // Counters can vanish with the member: only visible work takes back a reported idle.
  const stays = phase === 'idle' && !workSeen(claim, proof.verdict?.scopes ?? null)
  if (!stays && proof.scopes.size > 0) {
    follow(draft, claim, {
      sealed: false,
      unverified: proof.unverified ?? unverifiedBy(claim, reading),
    })
    if (!isIdle(claim)) return
  }
  endGone(draft, claim, 'absent')
}

function isIdle({ phase }: Open): boolean {
  return phase === 'idle'
}

/** Follows a member that gets no new clients: reports idle once it is proved, and takes it back once work is seen. */
function follow(
  draft: Draft,
  claim: Open,
  what: Pick<Open['proof'], 'sealed' | 'unverified'>,
): void {
  if (claim.phase === 'active') draft.phase(claim, 'draining')
  if (!stillIdle(claim)) loseIdle(draft, claim)
  if (claim.phase !== 'draining') return
  const proof = prove(draft, claim)
  if (proof === null) return
  const verdict = { at: draft.now, proof, scopes: marksOf(claim), sealedAt: null }
  draft.proof(claim, { proof, ...what, verdict })
  draft.phase(claim, 'idle')
  draft.emit(claim, { type: 'idle', ...draft.stamp, proof })
}
