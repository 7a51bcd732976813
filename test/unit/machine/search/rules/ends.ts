import type { OwnChange } from 'drainable/machine'
import { isAbove, workOf } from '../truth.js'
import { cameUnseen, emits, endsAs, shownAlive, type Judged, type Rule } from './judged.js'

/** Ends that come at the deadline, or past it. */
const LATE_ENDS = ['timeout', 'terminated', 'proceeded']
/** Ends that name their reason. */
const WITH_REASON = ['refused', 'gone', 'overruled', 'unreachable']

/** How a run may end, and what is true then. */
export const END_RULES: readonly Rule[] = [
  [
    'a member restored owes nothing',
    ({ step }) => {
      const { ending, hold } = step.node.machine
      if (ending.ended?.outcome !== 'restored') return true
      if (hold.pending !== null || hold.wish !== 'none') return false
      return ending.holding || hold.changes.length === 0 // while its run waits for other members
    },
  ],
  [
    'a member is called restored only where no lost hold of ours can come any more',
    (judged) => {
      if (!endsAs(judged, 'restored')) return true
      const { truth, now } = judged.step.node
      // Where another client set the same state meanwhile the two cannot be told apart.
      if (truth.operator) return true
      return truth.stragglers.every(
        ({ change, until }) =>
          change.kind !== 'hold' || truth.own === change.to || (until !== null && now >= until),
      )
    },
  ],
  [
    'a member is called restored only where nothing of ours is in place',
    (judged) => {
      if (!endsAs(judged, 'restored')) return true
      const { goal, found } = judged.step.node.machine
      const { truth, asked } = { ...judged.step.node, ...judged.before }
      if (truth.operator || asked !== null || goal.kind !== 'open') return true
      const was = goal.of === 'anybody' ? 'ready' : found?.own
      if (was === undefined || was === 'unknown') return true
      return truth.setBy !== 'us' || !isAbove(truth.own, was)
    },
  ],
  [
    'another client is named only where another client changed it',
    (judged) => !emits(judged, 'overruled') || judged.step.node.truth.operator,
  ],
  [
    'a member is gone only where it is not there, or another one',
    (judged) => {
      const { before, step, world } = judged
      // A member called removed stays so, whatever comes back under its name.
      if (!endsAs(judged, 'gone') || before.machine.phase === 'removed') return true
      if (world.may.includes('returns')) return true
      return step.node.truth.identity !== before.machine.found?.identity
    },
  ],
  [
    'a member is removed only where it is not there',
    (judged) => !endsAs(judged, 'removed') || judged.step.node.truth.identity !== 'first',
  ],
  [
    'what ends by time ends past its deadline',
    (judged) => {
      if (!LATE_ENDS.some((outcome) => endsAs(judged, outcome))) return true
      const { deadline, phase, ending } = judged.step.node.machine
      // One that was cut before may be idle, or removed, early.
      if (ending.terminated > 0 && (phase === 'idle' || phase === 'removed')) return true
      return deadline !== null && judged.step.node.now >= deadline
    },
  ],
  [
    'terminated is said only where no process that was shown held work in the last look',
    (judged) => {
      const { seen, node } = judged.step
      if (!endsAs(judged, 'terminated') || seen === null) return true
      if (judged.world.counts === 'none') {
        const released = seen.reading.scopes.every((one) => one.released === true)
        return released || node.machine.hold.changes.some(isCut)
      }
      return shownAlive(judged).every(
        (one) =>
          workOf(seen.truth, one.name) === 0 ||
          cameUnseen(judged, one) ||
          isYoung(judged, one.cameAt),
      )
    },
  ],
  [
    'idle is the outcome only of an idle that stands',
    (judged) => !endsAs(judged, 'idle') || judged.step.node.machine.phase === 'idle',
  ],
  [
    'unreachable is the outcome only where a look failed, or none came',
    (judged) => {
      if (!endsAs(judged, 'unreachable')) return true
      return judged.step.node.machine.unread !== null || judged.step.input?.type === 'overdue'
    },
  ],
  [
    'what ends without success names its reason',
    (judged) => {
      const { ended } = judged.step.node.machine.ending
      return !WITH_REASON.some((one) => endsAs(judged, one)) || ended?.error != null
    },
  ],
  [
    'an end stands, but for a new goal and an idle or an undo that is lost before the run has settled',
    ({ before, step }) => {
      const { ended, settled } = before.machine.ending
      // Another call of this process takes a member that is held, however its drain had ended.
      if (ended === null || ['goal', 'yield'].includes(step.input?.type ?? '')) return true
      if (step.node.runs > before.runs) return true
      if (step.node.machine.ending.ended === ended) return true
      return ['idle', 'terminated', 'restored'].includes(ended.outcome) && !settled
    },
  ],
]

function isCut({ kind, state }: OwnChange): boolean {
  return kind === 'terminate' && state === 'applied'
}

/** What is bound for less than `blind` shows in no count yet. */
function isYoung({ step, world }: Judged, cameAt: number | null): boolean {
  return cameAt !== null && step.seen !== null && cameAt > step.seen.askedAt - world.blind
}
