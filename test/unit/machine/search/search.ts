import { canonical } from './canonical.js'
import { moves } from './moves.js'
import type { Case, Node, Step } from './node.js'
import { broken, brokenIn } from './rules/rules.js'

/** A way from the start to what is wrong. */
export interface Fault {
  readonly rule: string
  readonly path: readonly string[]
}

export interface Figures {
  readonly states: number
  readonly steps: number
  readonly depth: number
  /** How often each kind of end was reached. */
  readonly reached: ReadonlyMap<string, number>
  readonly faults: readonly Fault[]
}

interface Visited {
  readonly node: Node
  readonly path: Path | null
}

interface Path {
  readonly name: string
  readonly before: Path | null
}

/** What keeps one search within its bounds. */
export interface Bounds {
  readonly depth: number
  /** Looks no deeper after that many faults of one rule. Default: 1. */
  readonly faultsPerRule?: number
  /** Ends early where it answers true; asked every thousand states. */
  readonly stop?: () => boolean
}

/**
 * Every state that can be reached from here in so many moves, breadth first: each is visited once, and
 * each step is judged.
 */
export function search(start: Node, one: Case, bounds: Bounds): Figures {
  const seen = new Set([keyOf(start)])
  const reached = new Map<string, number>()
  const faults: Fault[] = []
  const perRule = new Map<string, number>()
  let steps = 0
  let layer: Visited[] = [{ node: start, path: null }]
  let depth = 0
  while (depth < bounds.depth && layer.length > 0) {
    const next: Visited[] = []
    for (const { node, path } of layer) {
      if (steps % 1_000 === 0 && bounds.stop?.() === true)
        return { states: seen.size, steps, depth, reached, faults }
      for (const step of moves(node, one)) {
        steps += 1
        const way: Path = { name: step.name, before: path }
        const noteFaults = (rules: readonly string[]): boolean => {
          for (const rule of rules) {
            const known = perRule.get(rule) ?? 0
            perRule.set(rule, known + 1)
            if (known < (bounds.faultsPerRule ?? 1)) faults.push({ rule, path: namesOf(way) })
          }
          return rules.length > 0
        }
        if (noteFaults(broken(node, step, one))) continue
        for (const what of reachedBy(step, node)) reached.set(what, (reached.get(what) ?? 0) + 1)
        const key = keyOf(step.node)
        if (seen.has(key)) continue
        seen.add(key)
        if (noteFaults(brokenIn(step, one, key))) continue
        if (depth + 1 < bounds.depth) next.push({ node: step.node, path: way })
      }
    }
    layer = next
    depth += 1
  }
  return { states: seen.size, steps, depth, reached, faults }
}

function keyOf(node: Node): number {
  return canonical(node, node.now)
}

function namesOf(path: Path | null): readonly string[] {
  const names: string[] = []
  for (let one = path; one !== null; one = one.before) names.unshift(one.name)
  return names
}

/** What a step sends, and how it ends. */
export function reachedBy({ effects, node }: Step, before: Node): readonly string[] {
  const sent = effects.flatMap((effect) => (effect.type === 'apply' ? [effect.change.kind] : []))
  const said = effects.flatMap((effect) =>
    effect.type === 'emit' && ['idle', 'idle-lost'].includes(effect.event.type)
      ? [`said ${effect.event.type}`]
      : [],
  )
  const { ended } = node.machine.ending
  const outcomes = ended === null || ended === before.machine.ending.ended ? [] : [ended.outcome]
  return [...sent, ...said, ...outcomes]
}
