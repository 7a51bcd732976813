import { absorbFailure, absorbReading, absorbResult } from './absorb.js'
import { decide } from './decide.js'
import { Draft } from './draft.js'
import type { DrainState, Input, MachinePolicy, Transition } from './state.js'
import { explain } from './why.js'

/** A guard that said no is asked again after that long, in milliseconds. */
const ASK_AGAIN = 250
/** A member the hold of which was not sent, or was undone. */
const UNHELD = {
  pending: null,
  held: false,
  confirmed: 'none',
  effectiveSince: null,
  incarnationsAtWish: null,
} as const
/** A load event is repeated after that long without a change, in milliseconds. */
const SAY_AGAIN = 1_000

/**
 * One step of a member's drain: state and input in, state and effects out.
 *
 * Pure and total: it never throws, calls nothing, and knows no time but the input's. Level-triggered:
 * each reading is compared with the wish, so a reload that forgot the drain is just another reading.
 * A missing or partial reading is never a zero.
 */
export function transition(state: DrainState, input: Input, policy: MachinePolicy): Transition {
  const draft = absorb(state, input, policy)
  decide(draft)
  if (input.type === 'reading') sayLoad(draft)
  return { state: draft.state, effects: draft.effects }
}

/** What is known after an input, before anything is decided. */
export function absorbOnly(state: DrainState, input: Input, policy: MachinePolicy): DrainState {
  return absorb(state, input, policy).state
}

function absorb(state: DrainState, input: Input, policy: MachinePolicy): Draft {
  const draft = new Draft(state, input, policy)
  switch (input.type) {
    case 'reading':
      absorbReading(draft, input.reading, input.askedAt)
      break
    case 'unreadable':
      absorbFailure(draft, input.error, input.askedAt)
      break
    case 'result':
      absorbResult(draft, input.change, input.result)
      break
    case 'denied':
      draft.set({ ...UNHELD, atMinimum: true, notBefore: draft.now + ASK_AGAIN })
      draft.phase('active')
      if (input.final) {
        draft.end('refused', input.error)
        draft.set({ holding: false })
      }
      break
    case 'end':
      draft.end(input.outcome, input.error ?? null)
      draft.set({ holding: false })
      break
    case 'settle':
      draft.set({ settled: true })
      break
    case 'release':
      draft.set({ holding: false })
      break
    case 'tick':
      break
    default:
      input satisfies never
  }
  return draft
}

function sayLoad(draft: Draft): void {
  const { state } = draft
  if (state.phase === 'removed') return
  const why = explain(state, draft.policy, draft.now)
  const tracks = Object.values(state.scopes).filter((track) => track.last.state !== 'ended')
  const read = tracks.filter((track) => track.last.state === 'read')
  const active = read.reduce((sum, { last }) => sum + last.active, 0)
  const queued = read.reduce((sum, { last }) => sum + last.queued, 0)
  const complete = state.blind === null && read.length === tracks.length && tracks.length > 0
  const key = JSON.stringify([active, queued, complete, why.map((w) => [w.code, w.scope])])
  const quiet = state.said?.key === key && draft.now - state.said.at < SAY_AGAIN
  if (quiet || (state.said?.key === key && state.phase === 'idle')) return
  draft.set({ said: { key, at: draft.now } })
  const event = { type: 'load' as const, ...draft.stamp, active, queued, complete, why }
  const idleAt = draft.effects.findIndex((e) => e.type === 'emit' && e.event.type === 'phase')
  if (idleAt < 0) draft.emit(event)
  else draft.effects.splice(idleAt, 0, { type: 'emit', event }) // the load that led to the phase comes first
}
