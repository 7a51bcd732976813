import type { MachinePolicy } from 'drainable/machine'
import type { Change } from 'drainable/provider'
import type { Node, Step } from '../node.js'
import type { Process } from '../truth.js'
import type { World } from '../world.js'

/** One step, with what is needed to judge it. */
export interface Judged {
  readonly before: Node
  readonly step: Step
  readonly policy: MachinePolicy
  readonly world: World
}

/** What must hold of every step that has an input. */
export type Rule = readonly [text: string, holds: (judged: Judged) => boolean]

export function emits({ step }: Judged, type: string): boolean {
  return step.effects.some((effect) => effect.type === 'emit' && effect.event.type === type)
}

export function sent({ step }: Judged): readonly Change[] {
  return step.effects.flatMap((effect) => (effect.type === 'apply' ? [effect.change] : []))
}

export function endsAs({ before, step }: Judged, outcome: string): boolean {
  const { ended } = step.node.machine.ending
  return ended?.outcome === outcome && ended !== before.machine.ending.ended
}

/** Processes that lived when the newest look was asked for, and that looks of this run have shown. */
export function shownAlive({ step }: Judged): readonly Process[] {
  const { seen, node } = step
  if (seen === null) return []
  return seen.truth.processes.filter(
    ({ name, life }) => life === 'alive' && node.shown.includes(name),
  )
}

/**
 * Whether what came to a process last is younger than the numbers of the newest look may be. A client that comes back while
 * the member is held may be as young as the product can hide work: only what was bound before that is waited for.
 */
export function cameUnseen({ step, world }: Judged, { cameAt }: Process): boolean {
  const unseen = Math.max(world.freshness, world.persistent ? world.blind : 0)
  if (step.seen === null || cameAt === null || unseen === 0) return false
  return cameAt > step.seen.askedAt - unseen
}
