import type { Phase } from 'drainable'
import type { Goal } from 'drainable/machine'
import { isAbove } from '../truth.js'
import { emits, type Judged, type Rule } from './judged.js'

/** The moves of the table in src/core/machine/README.md. */
const PHASES: readonly (readonly [Goal['kind'], from: Phase, to: Phase])[] = [
  ['drain', 'active', 'draining'],
  ['watch', 'active', 'draining'],
  ['drain', 'draining', 'idle'],
  ['watch', 'draining', 'idle'],
  ['open', 'idle', 'draining'],
  ['drain', 'idle', 'draining'],
  ['watch', 'idle', 'draining'],
  ['drain', 'draining', 'active'],
  ['watch', 'draining', 'active'],
  ['drain', 'idle', 'active'],
  ['watch', 'idle', 'active'],
  ['open', 'draining', 'active'],
  ['drain', 'active', 'removed'],
  ['watch', 'active', 'removed'],
  ['open', 'active', 'removed'],
  ['drain', 'draining', 'removed'],
  ['watch', 'draining', 'removed'],
  ['open', 'draining', 'removed'],
  ['drain', 'idle', 'removed'],
  ['watch', 'idle', 'removed'],
]

/** In which order events come. */
export const EVENT_RULES: readonly Rule[] = [
  [
    'a drain says idle only after in-force, unless every process has ended',
    (judged) => {
      const { node } = judged.step
      if (!emits(judged, 'idle') || node.machine.goal.kind !== 'drain') return true
      return node.said.inForce || node.machine.proof.scopes.size === 0
    },
  ],
  [
    'in-force is said only where every process that is known has taken the hold',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'in-force')) return true
      const wish = lowerWish(judged)
      return (seen?.truth.processes ?? []).every(
        ({ name, life, taken }) =>
          life !== 'alive' ||
          !node.shown.includes(name) ||
          seen?.truth.identity === null ||
          (wish !== 'none' && !isAbove(wish, taken)),
      )
    },
  ],
  [
    'idle-lost is said only after idle',
    (judged) => !emits(judged, 'idle-lost') || judged.before.said.idle,
  ],
  [
    'idle is said once, until it is lost',
    (judged) => !emits(judged, 'idle') || !judged.before.said.idle || emits(judged, 'idle-lost'),
  ],
  [
    'removed is said once, and nothing but faults and an end after it',
    (judged) => {
      if (!judged.before.said.removed) return true
      return judged.step.effects.every(
        ({ type, ...effect }) =>
          type === 'emit' && 'event' in effect && effect.event.type === 'fault',
      )
    },
  ],
  [
    'each phase event goes on from the one before',
    (judged) => {
      let phase = judged.before.machine.phase
      for (const { from, to } of phases(judged)) {
        if (from !== phase) return false
        phase = to
      }
      const news = judged.step.node.runs > judged.before.runs || judged.step.input === null
      return news || phase === judged.step.node.machine.phase
    },
  ],
  [
    'phases move along the table',
    (judged) => {
      const kinds = [judged.before.machine.goal.kind, judged.step.node.machine.goal.kind]
      return phases(judged).every(({ from, to }) =>
        PHASES.some(([kind, ...way]) => kinds.includes(kind) && way[0] === from && way[1] === to),
      )
    },
  ],
  [
    'an overrule that is not put back ends the drain',
    ({ step }) =>
      step.effects.every(
        (effect) =>
          effect.type !== 'emit' ||
          effect.event.type !== 'overruled' ||
          effect.event.reset ||
          step.node.machine.ending.ended?.outcome === 'overruled' ||
          step.node.machine.ending.lossSaid ||
          !step.node.machine.ending.holding,
      ),
  ],
  [
    'another client is overruled three times at most',
    ({ before, step }) =>
      step.effects.every(
        (effect) =>
          effect.type !== 'emit' ||
          effect.event.type !== 'overruled' ||
          !effect.event.reset ||
          before.machine.hold.overrules < 3,
      ),
  ],
  [
    'a held idle is lost once, and only after the run has settled',
    ({ before, step }) =>
      step.effects.every(
        ({ type }) =>
          type !== 'lost' ||
          (before.machine.ending.settled &&
            before.machine.ending.holding &&
            !before.machine.ending.lossSaid),
      ),
  ],
]

function phases({ step }: Judged): readonly { readonly from: Phase; readonly to: Phase }[] {
  return step.effects.flatMap((effect) =>
    effect.type === 'emit' && effect.event.type === 'phase' ? [effect.event] : [],
  )
}

/** What was wished when the look came in: one that raises the wish at once is not in force at the new one. */
function lowerWish({ before, step }: Judged): 'none' | 'drain' | 'maint' {
  const { wish } = step.node.machine.hold
  const was = before.machine.hold.wish
  return was === 'drain' || wish === 'none' ? was : wish
}
