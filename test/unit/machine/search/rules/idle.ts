import type { Proof } from 'drainable/provider'
import { isAbove, workOf } from '../truth.js'
import { cameUnseen, emits, shownAlive, type Judged, type Rule } from './judged.js'

/** When idle, and a seal, may be said. */
export const IDLE_RULES: readonly Rule[] = [
  [
    'idle is said only where no process that was shown held work in the last look',
    (judged) => {
      const { seen } = judged.step
      if (!emits(judged, 'idle')) return true
      if (seen === null) return saidLater(judged)
      return shownAlive(judged).every(
        (one) => workOf(seen.truth, one.name) === 0 || cameUnseen(judged, one),
      )
    },
  ],
  [
    'idle is said only where nothing had come for the quiet time',
    (judged) => {
      const { step, world, policy } = judged
      const { seen } = step
      if (!emits(judged, 'idle') || seen === null || world.counts !== 'arrivals') return true
      const quiet = Math.max(policy.settle, world.blind)
      return shownAlive(judged).every(
        (one) =>
          one.cameAt === null || seen.askedAt - one.cameAt >= quiet || cameUnseen(judged, one),
      )
    },
  ],
  [
    'idle is said only where every process had taken the hold',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'idle') || seen === null || node.machine.goal.kind === 'watch') return true
      const { wish } = node.machine.hold
      return wish !== 'none' && shownAlive(judged).every(({ taken }) => !isAbove(wish, taken))
    },
  ],
  [
    'the proof of an idle has two samples of zeros, far enough apart',
    (judged) => {
      const { policy } = judged
      const { freshness, counts } = policy.capabilities
      return proofsOf(judged).every(({ samples }) => {
        if (samples.some(({ scopes }) => scopes.some((one) => one.active + one.queued !== 0)))
          return false
        const [first, last] = samples
        if (first === undefined || counts === 'none') return true
        return first.scopes.every((one, i) => {
          const apart = (last?.scopes[i]?.sampledAt ?? one.sampledAt) - one.sampledAt
          return one.released === true || apart >= Math.max(5, freshness)
        })
      })
    },
  ],
  [
    'the proof of an idle covers the quiet time',
    (judged) => {
      const { policy, step, world } = judged
      if (world.counts === 'none') return true
      const quiet = Math.max(policy.settle, world.blind)
      return proofsOf(judged).every(({ quietSince, arrivals, samples }) => {
        if (samples.length === 0) return true
        const need = arrivals === 'unknown' ? Math.max(quiet, 3_000) : quiet
        return step.node.now - Date.parse(quietSince) >= need
      })
    },
  ],
  [
    'an idle is taken back only for a reason that was seen',
    (judged) => {
      const { step, before, world } = judged
      if (!emits(judged, 'idle-lost') || step.seen === null) return true
      const { machine } = before
      const { reading } = step.seen
      if (!reading.present || reading.own === 'unknown') return true
      const wish = machine.goal.kind === 'watch' ? 'drain' : machine.hold.wish
      if (wish === 'none' || isAbove(wish, reading.own) || reading.sealed === false) return true
      if (machine.proof.sealed && reading.own !== 'maint') return true
      const listed = new Set(reading.scopes.map(({ scope }) => scope))
      if (shownAlive(judged).some(({ name }) => !listed.has(name))) return true
      const marks = machine.proof.verdict?.scopes
      return reading.scopes.some((one) => {
        const { scope, state, active, queued, incarnation, arrivals, admin } = one
        if (world.counts === 'none' && one.released !== true) return true
        const mark = marks?.get(scope)
        const same = mark?.incarnation === incarnation && mark.arrivals === (arrivals ?? null)
        const door = admin !== undefined && admin !== 'maint' && machine.proof.sealed
        return state !== 'read' || active + queued > 0 || !same || door
      })
    },
  ],
  [
    'idle is said only where every process that was shown was read',
    (judged) => {
      const { seen } = judged.step
      if (!emits(judged, 'idle') || seen === null) return true
      const read = seen.reading.scopes.filter(({ state }) => state === 'read')
      return shownAlive(judged).every(({ name }) => read.some(({ scope }) => scope === name))
    },
  ],
  [
    'a drain says idle only of a state that it knows',
    (judged) => {
      const { seen, node } = judged.step
      if (!emits(judged, 'idle') || node.machine.goal.kind === 'watch') return true
      if (seen === null) return saidLater(judged)
      return seen.reading.present && seen.reading.own !== 'unknown'
    },
  ],
  [
    'idle is said only by a look asked for after the last change had its answer',
    (judged) => {
      if (!emits(judged, 'idle')) return true
      const { last } = judged.step.node.machine
      return (last?.askedAt ?? 0) > judged.before.machine.hold.confirmedAt
    },
  ],
  [
    'sealed is said only where no process that was shown lets a client in',
    (judged) => {
      const { before, step, world } = judged
      const { seen, node } = step
      if (!node.machine.proof.sealed || before.machine.proof.sealed) return true
      if (seen === null) return saidLater(judged)
      if (!seen.reading.present) return false
      if (world.sealed === 'told') return seen.reading.sealed === true
      return (
        seen.truth.own === 'maint' && shownAlive(judged).every(({ taken }) => taken === 'maint')
      )
    },
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
]

/** What the newest look proves may be said when the last one did not come: a seal that fell is judged by the rule again. */
function saidLater({ step }: Judged): boolean {
  const { unread, last } = step.node.machine
  const known = last?.reading.present === true && last.reading.own !== 'unknown'
  return step.input?.type !== 'reading' && unread === null && known
}

function proofsOf({ step }: Judged): readonly Proof[] {
  return step.effects.flatMap((effect) =>
    effect.type === 'emit' && effect.event.type === 'idle' ? [effect.event.proof] : [],
  )
}
