import { brokenInvariants } from 'drainable/machine'
import type { Case, Node, Step } from './moves.js'
import { workOf } from './truth.js'

/** What one step breaks; empty where all is well. */
export function broken(before: Node, step: Step, { policy, world }: Case): readonly string[] {
  const found = brokenInvariants(step.node.machine).map((text) => `invariant: ${text}`)
  if (step.input === null) return found
  for (const [text, holds] of RULES)
    if (!holds({ before, step, settle: Math.max(policy.settle, world.blind) })) found.push(text)
  return found
}

interface Judged {
  readonly before: Node
  readonly step: Step
  readonly settle: number
}

function emits({ step }: Judged, type: string): boolean {
  return step.effects.some((effect) => effect.type === 'emit' && effect.event.type === type)
}

function sent({ step }: Judged) {
  return step.effects.flatMap((effect) => (effect.type === 'apply' ? [effect.change] : []))
}

function endsAs({ before, step }: Judged, outcome: string): boolean {
  const { ended } = step.node.machine.ending
  return ended?.outcome === outcome && ended !== before.machine.ending.ended
}

const RULES: readonly (readonly [string, (judged: Judged) => boolean])[] = [
  [
    'idle is said only where no process that was shown held work in the last look',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'idle')) return true
      return seen !== null && node.shown.every((name) => workOf(seen.truth, name) === 0)
    },
  ],
  [
    'idle is said only where nothing had come for the quiet time',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'idle') || seen === null) return true
      return seen.truth.processes.every(
        (one) =>
          one.life !== 'alive' ||
          !node.shown.includes(one.name) ||
          one.cameAt === null ||
          seen.askedAt - one.cameAt >= judged.settle,
      )
    },
  ],
  [
    'idle is said only where every process had taken the hold',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'idle') || seen === null || node.machine.goal.kind === 'watch') return true
      return seen.truth.processes.every(
        (one) => one.life !== 'alive' || !node.shown.includes(one.name) || one.taken !== 'ready',
      )
    },
  ],
  [
    'idle is said only by a look asked for after the last change had its answer',
    (judged) => {
      if (!emits(judged, 'idle')) return true
      return (judged.step.seen?.askedAt ?? 0) > judged.before.machine.hold.confirmedAt
    },
  ],
  [
    'sealed is said only where the own state was maint',
    ({ before, step }) =>
      !step.node.machine.proof.sealed ||
      before.machine.proof.sealed ||
      step.seen?.truth.own === 'maint',
  ],
  [
    'a process that ended with work is lost',
    (judged) => {
      if (!emits(judged, 'idle')) return true
      const { machine } = judged.step.node
      const busy = [...judged.before.machine.proof.scopes].filter(
        ([name, { read }]) =>
          !machine.proof.scopes.has(name) && read !== null && read.active + read.queued > 0,
      )
      return busy.every(([name]) => machine.proof.lost.some(({ scope }) => scope === name))
    },
  ],
  [
    'nothing is sent while a change is under way',
    ({ before, step }) => {
      const { pending } = before.machine.hold
      const answered = step.input?.type === 'result' && step.input.change === pending?.change
      return pending === null || answered || !step.effects.some(({ type }) => type === 'apply')
    },
  ],
  ['at most one change is sent at a time', (judged) => sent(judged).length <= 1],
  [
    'what is sent is what is under way',
    (judged) => {
      const [one] = sent(judged)
      return one === undefined || judged.step.node.machine.hold.pending?.change === one
    },
  ],
  [
    'every change names the member that was found',
    (judged) =>
      sent(judged).every(({ identity }) => identity === judged.step.node.machine.found?.identity),
  ],
  [
    'nothing is sent to a member last read as another one, or absent',
    (judged) => {
      if (sent(judged).length === 0) return true
      const { last, found } = judged.step.node.machine
      return last?.reading.present === true && last.reading.identity === found?.identity
    },
  ],
  [
    'nothing is sent on the word of a look from before the last answer',
    (judged) => {
      if (sent(judged).length === 0) return true
      const { last } = judged.step.node.machine
      return last !== null && last.askedAt > judged.before.machine.hold.confirmedAt
    },
  ],
  [
    'nothing is sent after an end that lets go',
    (judged) => {
      const { ended, holding } = judged.before.machine.ending
      const again = judged.step.input?.type === 'goal'
      return ended === null || holding || again || sent(judged).length === 0
    },
  ],
  [
    'a watch sends nothing',
    (judged) => judged.before.machine.goal.kind !== 'watch' || sent(judged).length === 0,
  ],
  [
    'an undo changes no state that the ledger can not explain',
    (judged) => {
      const { goal, hold } = judged.before.machine
      if (goal.kind !== 'open' || goal.of !== 'ours') return true
      return sent(judged).every(
        (one) =>
          one.kind === 'restore' &&
          (hold.changes.some(({ to, state }) => to === one.expect && state !== 'unchanged') ||
            hold.late.some(({ change }) => 'to' in change && change.to === one.expect)),
      )
    },
  ],
  [
    'an undo changes nothing that another client set and we never did',
    (judged) => {
      const { goal } = judged.before.machine
      const { seen } = judged.step
      if (goal.kind !== 'open' || goal.of !== 'ours' || seen === null) return true
      if (seen.truth.setBy !== 'operator' || sent(judged).length === 0) return true
      return ledger(judged.before).includes(seen.truth.own)
    },
  ],
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
    'another client is named only where another client changed it',
    (judged) => !emits(judged, 'overruled') || judged.step.node.truth.operator,
  ],
  [
    'a member is gone only where it is not there, or another one',
    (judged) => !endsAs(judged, 'gone') || judged.step.node.truth.identity !== 'first',
  ],
  [
    'a member is removed only where it is not there',
    (judged) => !endsAs(judged, 'removed') || judged.step.node.truth.identity !== 'first',
  ],
  [
    'an end stands, but for a new goal and an idle or an undo that is lost before the run has settled',
    ({ before, step }) => {
      const { ended, settled } = before.machine.ending
      if (ended === null || step.input?.type === 'goal') return true
      if (step.node.machine.ending.ended === ended) return true
      return (ended.outcome === 'idle' || ended.outcome === 'restored') && !settled
    },
  ],
]

function ledger({ machine }: Node): readonly (string | null)[] {
  const { changes, late } = machine.hold
  return [
    ...changes.map(({ to }) => to),
    ...late.map(({ change }) => ('to' in change ? change.to : null)),
  ]
}
