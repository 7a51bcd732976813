import type { PresentReading } from '../../../provider/contract.js'
import type { Draft } from '../draft.js'
import { maintEffect } from '../policy.js'
import { isRefused } from '../ledger/result.js'
import { sendHold } from './send.js'

/** Raises a drain that persistent clients keep busy. */
export function escalate(draft: Draft, reading: PresentReading): void {
  const { state, policy } = draft
  const { escalateAfter } = policy
  if (escalateAfter === null || state.hold.escalated) return
  if (state.ending.ended !== null || state.phase === 'idle') return
  if (draft.now < state.startedAt + escalateAfter || draft.now < state.hold.notBefore) return
  draft.hold({ escalated: true })
  raise(draft, reading)
}

/** Raises to maint if the product has it above the present state; a raise that cuts needs the caller's permission. */
export function raise(draft: Draft, reading: PresentReading): void {
  const effect = maintEffect(draft.policy, reading)
  if (effect === 'none' || reading.own === 'maint' || reading.sealed === true) return
  if (effect !== 'gentle' && draft.policy.onTimeout !== 'terminate') return
  const change = { kind: 'hold' as const, to: 'maint' as const, ref: draft.state.ref }
  if (isRefused(draft.state, change)) return
  draft.hold({ wish: 'maint' })
  draft.proof({ verdict: null })
  sendHold(draft)
}
