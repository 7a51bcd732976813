import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { absorbFailure, absorbReading } from './absorb.js'
import { decideDrain } from './decide/drain.js'
import { endOverdue } from './decide/deadline.js'
import { isReportedIdle } from './decide/idle.js'
import { decideOpen, forgetChanges, openOverdue } from './decide/open.js'
import { decideWatch } from './decide/watch.js'
import { Draft } from './draft.js'
import type { OpenGoal } from './goal.js'
import type { Input, Transition } from './input.js'
import type { MachinePolicy } from './policy.js'
import { marksOf } from './proof.js'
import { admitCut } from './ledger/cuts.js'
import { inherit } from './ledger/inherit.js'
import { absorbResult } from './ledger/result.js'
import { recall } from './rough.js'
import { sayLoad } from './say-load.js'
import { forgetSamples } from './scopes.js'
import { absorbSight } from './sighted.js'
import { isLetGo, NO_PROOF, type DrainState } from './state.js'

/**
 * One step of a member's run: state and input in, state and effects out.
 *
 * Pure and total: it never throws, calls nothing, and uses only the input's time. Level-triggered: each reading is
 * compared with the goal, so a reload that forgot the drain is just another reading. A missing or partial reading is
 * never a zero.
 */
export function transition(state: DrainState, input: Input, policy: MachinePolicy): Transition {
  const draft = absorb(state, input, policy)
  decide(draft)
  if (input.type === 'reading') sayLoad(draft)
  return { state: draft.state, effects: draft.effects }
}

/** Takes an input into the state, without any decision. */
export function absorbOnly(state: DrainState, input: Input, policy: MachinePolicy): DrainState {
  return absorb(state, input, policy).state
}

function decide(draft: Draft): void {
  const { goal } = draft.state
  switch (goal.kind) {
    case 'drain':
      decideDrain(draft)
      return
    case 'open':
      decideOpen(draft, goal)
      return
    case 'watch':
      decideWatch(draft)
      return
    default:
      goal satisfies never
  }
}

function absorb(state: DrainState, input: Input, policy: MachinePolicy): Draft {
  const draft = new Draft(state, input, policy)
  switch (input.type) {
    case 'reading':
      absorbReading(draft, input)
      break
    case 'unreadable':
      absorbFailure(draft, input.error, input.askedAt)
      break
    case 'overdue':
      overdue(draft, input.error)
      break
    case 'inherit':
      inherit(draft, input)
      break
    case 'result':
      absorbResult(draft, input)
      break
    case 'recalled':
      recall(draft)
      break
    case 'denied':
      deny(draft, input)
      break
    case 'checked':
      checked(draft, input.error)
      break
    case 'sighted':
      absorbSight(draft, input.sight)
      break
    default:
      absorbOrder(draft, input)
  }
  return draft
}

/** Inputs that do not come from the balancer, but from the run, its user, or another call of this process. */
type Order = Extract<
  Input,
  { readonly type: 'goal' | 'yield' | 'end' | 'doubt' | 'settle' | 'release' }
>

function absorbOrder(draft: Draft, input: Order): void {
  switch (input.type) {
    case 'goal':
      changeGoal(draft, input.goal)
      break
    case 'yield':
      yieldTo(draft, input.error)
      break
    case 'end':
      draft.finish(input.outcome, input.error)
      break
    case 'doubt':
      doubt(draft)
      break
    case 'settle':
      settle(draft)
      break
    case 'release':
      draft.ending({ holding: false })
      break
    default:
      input satisfies never
  }
}

function overdue(draft: Draft, error: Parameters<Draft['fault']>[0]): void {
  const { goal } = draft.state
  if (goal.kind === 'open') openOverdue(draft, goal, error)
  else endOverdue(draft)
}

/**
 * Settles the outcome. If the outcome is idle, work seen afterwards is reported. A member that was opened again is no
 * longer watched.
 */
function settle(draft: Draft): void {
  const outcome = draft.state.ending.ended?.outcome
  if (outcome === 'restored') {
    forgetChanges(draft)
    draft.ending({ holding: false })
  }
  const quiet = outcome === 'idle' || outcome === 'terminated'
  draft.ending({ settled: true, marks: quiet ? marksOf(draft.state) : null })
}

/**
 * Reopens the question whether the member is still idle. If it can't be read now, the next look decides, and at the
 * deadline it is unknown. If it can be read, the newest reading ends it again.
 */
function doubt(draft: Draft): void {
  if (isReportedIdle(draft.state) && !draft.state.ending.settled) draft.ending({ ended: null })
}

/** Takes in that the floor refused the first hold: nothing was sent, and the next look decides again. */
function deny(draft: Draft, { error, isFinal }: Extract<Input, { readonly type: 'denied' }>): void {
  const atMinimum = draft.state.hold.atMinimum || isFinal
  draft.hold({ pending: null, wish: 'none', floor: 'unasked', atMinimum })
  if (isFinal && draft.policy.onMinimum === 'fail') draft.finish('refused', error)
}

function checked(draft: Draft, error: Parameters<Draft['fault']>[0] | null): void {
  const { goal } = draft.state
  if (goal.kind !== 'open') return
  if (error === null) draft.set({ goal: { ...goal, check: 'passed' } })
  else draft.finish('refused', error)
}

/** Changes the goal: drops proof and seal, keeps the ledger and changes that may still be carried out. */
function changeGoal(draft: Draft, goal: OpenGoal): void {
  if (draft.state.phase === 'idle') draft.phase('draining') // the proof is dropped
  admitCut(draft)
  const { hold, proof, ending, last, phase } = draft.state
  draft.set({
    goal,
    hold: {
      ...hold,
      wish: 'none',
      confirmed: 'none',
      overruled: false,
      yieldAt: null,
      floor: 'unasked',
      losses: 0,
      loss: null,
      refusals: 0,
      refusal: null,
      notBefore: draft.now,
      // Another client can have changed the state since the last reading: a new look decides.
      confirmedAt: Math.max(hold.confirmedAt, last?.askedAt ?? hold.confirmedAt),
    },
    proof: {
      ...NO_PROOF,
      scopes: forgetSamples(proof.scopes),
      ended: proof.ended,
      lost: proof.lost,
    },
    ending: {
      ...ending,
      ended: null,
      settled: false,
      holding: true,
      marks: null,
      terminateUntil: null,
    },
  })
  if (phase !== 'removed') return
  const { ref } = draft.state
  const words = `${formatRef(ref)} is not in the pool any more, there is nothing to open`
  draft.finish('gone', new DrainableError('MEMBER_GONE', words, { ref }))
}

/**
 * Lets go of the member before another call of this process, which controls it now, sends anything. An idle that is
 * not yet the outcome of the whole run is dropped.
 */
function yieldTo(draft: Draft, error: Parameters<Draft['fault']>[0]): void {
  const { ending } = draft.state
  if (isLetGo(draft.state)) return
  if (ending.ended?.outcome === 'restored') {
    forgetChanges(draft)
    draft.ending({ holding: false }) // it was opened; what comes after that is the other call's
    return
  }
  draft.lose(error)
  if (!ending.settled) draft.ending({ ended: null })
  draft.proof({ proof: null, verdict: null, sealed: false })
  draft.phase('active')
  draft.finish('overruled', error)
}
