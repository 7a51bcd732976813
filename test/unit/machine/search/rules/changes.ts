import { sameChange } from '../../../../../src/core/machine/ledger/changes.js'
import { maintEffect } from '../../../../../src/core/machine/policy.js'
import { loadOf } from '../../../../../src/core/machine/state.js'
import type { Node } from '../node.js'
import { sent, type Judged, type Rule } from './judged.js'

/** What may be sent, and when. */
export const CHANGE_RULES: readonly Rule[] = [
  [
    'nothing is sent while a change is under way',
    ({ before, step }) => {
      const { pending } = before.machine.hold
      const { input } = step
      const answered = input?.type === 'result' && input.change === pending?.change
      const kept = input?.type === 'denied' || input?.type === 'recalled' // it was not sent
      return pending === null || answered || kept || !step.effects.some(isApply)
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
    'nothing is sent while the balancer can not be read, or contradicts itself',
    (judged) => {
      const { last, unread } = judged.step.node.machine
      const cuts = judged.step.node.machine.ending.terminateUntil !== null
      const known = last?.reading.present === true && (cuts || last.reading.own !== 'unknown')
      // A cut and a removal are the same in any state.
      return sent(judged).every(
        ({ kind }) => unread === null && (known || kind === 'terminate' || kind === 'remove'),
      )
    },
  ],
  [
    'nothing is sent after an end that lets go',
    (judged) => {
      const { ended, holding } = judged.before.machine.ending
      const again = ['goal', 'inherit'].includes(judged.step.input?.type ?? '')
      return ended === null || holding || again || sent(judged).length === 0
    },
  ],
  [
    'a watch sends nothing',
    (judged) => judged.before.machine.goal.kind !== 'watch' || sent(judged).length === 0,
  ],
  [
    'a drain opens nothing, and an undo closes nothing',
    (judged) => {
      const { goal } = judged.step.node.machine
      return sent(judged).every(({ kind }) => (kind === 'restore') === (goal.kind === 'open'))
    },
  ],
  [
    'a refusal for good is not tried again',
    (judged) => {
      const { refusal } = judged.before.machine.hold
      if (refusal === null || refusal.error.retryable) return true
      if (judged.step.input?.type === 'goal') return true
      return sent(judged).every((one) => !sameChange(one, refusal.change))
    },
  ],
  [
    'only a first hold asks the floor',
    ({ before, step }) =>
      step.effects.every(
        (effect) =>
          effect.type !== 'apply' ||
          !effect.first ||
          (effect.change.kind === 'hold' && before.machine.hold.floor === 'unasked'),
      ),
  ],
  [
    'what was ready is held only once the floor was asked',
    ({ before, step }) =>
      step.effects.every(
        (effect) =>
          effect.type !== 'apply' ||
          effect.change.kind !== 'hold' ||
          effect.first ||
          before.machine.hold.floor !== 'unasked' ||
          before.machine.hold.confirmed !== 'none',
      ),
  ],
  [
    'a maint that cuts is sent over work only on the word to cut',
    (judged) => {
      const { policy, step } = judged
      const { last } = step.node.machine
      const reading = last?.reading
      if (policy.onTimeout === 'terminate' || reading?.present !== true) return true
      if (maintEffect(policy, reading) === 'gentle' || loadOf(step.node.machine) === 0) return true
      return sent(judged).every((one) => one.kind !== 'hold' || one.to !== 'maint')
    },
  ],
  [
    'work is cut only past the deadline, and on the word to cut',
    (judged) => {
      const { deadline } = judged.before.machine
      const late = deadline !== null && judged.step.node.now >= deadline
      const word = judged.policy.onTimeout === 'terminate'
      return (late && word) || sent(judged).every(({ kind }) => kind !== 'terminate')
    },
  ],
  [
    'a member is taken out only while its idle stands',
    (judged) =>
      judged.step.node.machine.phase === 'idle' ||
      sent(judged).every(({ kind }) => kind !== 'remove'),
  ],
  [
    'a member leaves maint by way of drain where a check is waited for',
    ({ before, step, policy }) => {
      const { goal } = before.machine
      const reading = step.seen?.reading
      if (goal.kind !== 'open' || reading?.present !== true) return true
      const checked = reading.health !== 'unchecked' || !['none', 'passed'].includes(goal.check)
      const skips = checked && policy.capabilities.ladder.includes('drain')
      return step.effects.every(
        (effect) =>
          effect.type !== 'apply' ||
          effect.change.kind !== 'restore' ||
          effect.change.to !== 'ready' ||
          !(skips && effect.change.expect === 'maint'),
      )
    },
  ],
  [
    'a door is opened only once a check has a result, and a good one where that is wished',
    (judged) => {
      const { goal } = judged.step.node.machine
      const reading = judged.step.node.machine.last?.reading
      if (goal.kind !== 'open' || reading?.present !== true) return true
      const bad = reading.health === 'unknown' || (goal.mustBeHealthy && reading.health === 'down')
      return !bad || sent(judged).every((one) => one.kind !== 'restore' || one.to !== 'ready')
    },
  ],
  [
    'an undo leaves alone what another client was seen to have taken back and set again',
    (judged) => {
      const { goal } = judged.before.machine
      const { seen } = judged.step
      if (goal.kind !== 'open' || goal.of !== 'ours' || seen === null) return true
      if (!judged.before.takenBack || seen.truth.setBy !== 'operator') return true
      return sent(judged).length === 0
    },
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
]

function isApply({ type }: Judged['step']['effects'][number]): boolean {
  return type === 'apply'
}

function ledger({ machine }: Node): readonly (string | null)[] {
  const { changes, late } = machine.hold
  return [
    ...changes.map(({ to }) => to),
    ...late.map(({ change }) => ('to' in change ? change.to : null)),
  ]
}
