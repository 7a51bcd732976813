import { openGoal, type Goal } from 'drainable/machine'
import type { Random } from '../../../model/random.js'
import { moves } from './moves.js'
import type { Case, Node, Step } from './node.js'
import { broken } from './rules/rules.js'
import { searchCase, type SearchCase } from './search-case.js'
import { reachedBy, type Fault } from './search.js'
import { nameOf, type Row } from './switches.js'
import type { Group, World } from './world.js'

/** The moves that lead on: a walk takes them more often than any other. */
const LOOK = /^look( after long)?$/
const ANSWER = /^(applied|unchanged)$/
/** What ends or replaces a run: taken seldom. */
const LEAVES = /^(abort|yield|release|undo|ready begins|another drain|crash|step ends)/
const SELDOM = 0.3
/** How often it leads on. */
const ONWARD = 0.6

/** A row of switches as a case that can be searched. */
export function pairCase(row: Row): SearchCase {
  const cuts = row.maint === 'none' ? (['ready', 'drain'] as const) : undefined
  return searchCase({
    name: nameOf(row),
    policy: {
      hold: row.hold,
      seal: row.seal,
      maint: row.maint,
      until: row.until,
      onTimeout: row.onTimeout,
      onOverrule: row.onOverrule,
      onMinimum: row.onMinimum,
      escalateAfter: row.escalateAfter,
      terminate: row.terminate,
      countsAfterRemove: row.countsAfterRemove,
      counts: row.counts === 'none' ? 'none' : 'requests',
      blind: row.blind,
      freshness: row.freshness,
      lateBound: row.lateBound,
      ...(cuts === undefined ? {} : { ladder: cuts }),
    },
    world: worldOf(row),
    goal: goalOf(row),
    own: row.own,
    contradicts: row.contradicts,
    second: row.second,
    ...(row.timeout === null ? {} : { timeout: row.timeout }),
    depth: 3,
  })
}

function worldOf(row: Row): Partial<World> {
  const plays = [row.plays, row.playsToo].filter((one): one is Group => one !== 'nothing more')
  const checks = row.goal === 'healthy' || row.goal === 'own check'
  const { blind, freshness, persistent, listsAll, counts, tellsClock, sealed, unverified } = row
  const world = { blind, freshness, persistent, listsAll, counts, tellsClock, sealed, unverified }
  return { ...world, may: checks && !plays.includes('health') ? [...plays, 'health'] : plays }
}

function goalOf({ goal }: Row): Goal {
  if (goal === 'drain' || goal === 'watch') return { kind: goal }
  const open = { of: 'anybody', until: 30_000, lateUntil: null } as const
  if (goal === 'anybody') return openGoal(open)
  const check = goal === 'own check' ? 'due' : 'none'
  return openGoal({ ...open, mustBeHealthy: true, check })
}

/** A walk from a start, with what was wrong on the way. */
export interface Walk {
  readonly node: Node
  readonly path: readonly string[]
  readonly reached: readonly string[]
  readonly faults: readonly Fault[]
}

/** A walk at random that leads on more often than not: a place deep inside, where a search can begin. */
export function walk(start: Node, one: Case, random: Random, length: number): Walk {
  let node = start
  const path: string[] = []
  const reached: string[] = []
  while (path.length < length) {
    const all = [...moves(node, one)]
    if (all.length === 0) break
    const step = pick(all, random)
    path.push(step.name)
    const rules = broken(node, step, one)
    reached.push(...reachedBy(step, node))
    if (rules.length > 0)
      return { node, path, reached, faults: rules.map((rule) => ({ rule, path: [...path] })) }
    node = step.node
  }
  return { node, path, reached, faults: [] }
}

function pick(all: readonly Step[], random: Random): Step {
  if (!random.chance(ONWARD)) {
    const inside = all.filter(({ name }) => !LEAVES.test(name))
    return random.pick(inside.length === 0 || random.chance(SELDOM) ? all : inside)
  }
  const answers = all.filter(({ name }) => ANSWER.test(name))
  if (answers.length > 0 && random.chance(ONWARD)) return random.pick(answers)
  const looks = all.filter(({ name }) => LOOK.test(name))
  return random.pick(looks.length > 0 ? looks : all)
}
