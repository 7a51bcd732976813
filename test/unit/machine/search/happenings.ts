import type { AdminState } from 'drainable/provider'
import { may, type Node } from './node.js'
import { carryOut, change, isAbove, isOpen, setOwn, type Process, type Truth } from './truth.js'
import type { World } from './world.js'

/** For how long a process stands still, in milliseconds. */
const STANDSTILL = 200

/** What is true after it, and how much later that is. */
type Happening = readonly [name: string, truth: Truth, later?: number]

/** What happens without an input. */
export function* happenings({ now, truth, machine }: Node, world: World): Generator<Happening> {
  for (const one of truth.processes) yield* ofProcess(one, truth, now, world)
  yield* ofOperators(truth, world)
  yield* ofBalancer(truth, world)
  const [late, ...rest] = truth.stragglers
  if (late !== undefined && (late.until === null || now < late.until)) {
    const done = carryOut(truth, late.change)
    if (done !== null && late.underWay !== true)
      yield ['lost change carried out', { ...done, stragglers: rest }]
  }
  const { pending } = machine.hold
  if (pending !== null && !truth.landed) {
    const done = carryOut(truth, pending.change)
    if (done !== null && done !== truth) yield ['change carried out', { ...done, landed: true }]
  }
}

const STATES = ['ready', 'drain', 'maint'] as const satisfies readonly AdminState[]

function* ofOperators(truth: Truth, world: World): Generator<Happening> {
  for (const own of STATES)
    if (truth.own !== own && truth.identity !== null)
      yield [`operator sets ${own}`, { ...setOwn(truth, own, 'operator'), operator: true }]
  if (truth.identity === 'first') {
    yield ['member removed', { ...truth, identity: null, operator: true }]
    const replaced = setOwn(truth, 'ready', 'operator')
    yield ['member replaced', { ...replaced, identity: 'other', operator: true }]
  } else if (may(world, 'returns')) {
    const returned = setOwn(truth, 'ready', 'operator')
    yield ['member returns', { ...returned, identity: 'first', operator: true }]
  }
}

/** What the balancer does, or says, of the member as a whole. */
function* ofBalancer(truth: Truth, world: World): Generator<Happening> {
  if (may(world, 'contradicts') || truth.contradicts) {
    const name = truth.contradicts ? 'it agrees again' : 'it contradicts itself'
    yield [name, { ...truth, contradicts: !truth.contradicts }]
  }
  if (may(world, 'inherits')) {
    const { inherited } = truth
    yield [
      inherited === null ? 'its node is drained' : 'its node is opened',
      { ...truth, inherited: inherited === null ? 'drain' : null },
    ]
  }
  if (may(world, 'health'))
    for (const health of ['up', 'down', 'unknown'] as const)
      if (truth.health !== health) yield [`health is ${health}`, { ...truth, health }]
  if (may(world, 'doubts') && !truth.rough) yield ['maint begins to cut', { ...truth, rough: true }]
}

function* ofProcess(one: Process, truth: Truth, now: number, world: World): Generator<Happening> {
  const { name } = one
  const as = (news: (known: Process) => Partial<Process>): Truth => change(truth, name, news)
  if (one.life === 'unborn') {
    yield [`${name} joins`, as(() => ({ life: 'alive', taken: truth.own }))]
    return
  }
  if (one.life === 'ended') return
  yield* ofWork(one, as, { now, world, isMember: truth.identity !== null })
  yield* ofRestarts(one, truth, as, world)
  if (name === 'b') {
    yield ['b ends', as(() => ({ life: 'ended', work: [], queued: 0 }))]
    yield [one.readable ? 'b blurs' : 'b clears', as(() => ({ readable: !one.readable }))]
    yield [
      one.old ? 'b takes over' : 'b grows old',
      as(() => ({ old: !one.old, taken: one.old ? truth.own : one.taken })),
    ]
    if (may(world, 'unlisted') && !world.listsAll)
      yield [one.listed ? 'b is not listed' : 'b is listed', as(() => ({ listed: !one.listed }))]
  }
}

type As = (news: (known: Process) => Partial<Process>) => Truth

interface At {
  readonly now: number
  readonly world: World
  readonly isMember: boolean
}

function* ofWork(one: Process, as: As, { now, world, isMember }: At): Generator<Happening> {
  const { name } = one
  // A process that does not know the member any more sends nothing there.
  const open = isOpen(one, world) && (isMember || one.old)
  const arrives = ({ arrivals }: Process) => ({
    work: [{ takenAt: now }],
    arrivals: arrivals + 1,
    cameAt: now,
  })
  if (open && one.work.length === 0) yield [`${name} gets work`, as(arrives)]
  if (one.work.some(({ takenAt }) => takenAt + world.blind <= now))
    yield [`${name} finishes`, as(() => ({ work: [] }))]
  if (may(world, 'blinks') && open)
    yield [
      `${name} gets work and ends it`,
      as(({ arrivals }) => ({ arrivals: arrivals + 1, cameAt: now })),
    ]
  if (may(world, 'queues')) {
    if (open && one.queued === 0) yield [`${name} queues`, as(() => ({ queued: 1, cameAt: now }))]
    if (one.queued > 0)
      yield [`${name} serves its queue`, as((known) => ({ ...arrives(known), queued: 0 }))]
  }
  if (may(world, 'stops') && world.tellsClock)
    yield [
      `${name} stands still`,
      as(({ lag, work }) => ({
        lag: lag + STANDSTILL,
        work: work.map(({ takenAt }) => ({ takenAt: takenAt + STANDSTILL })),
      })),
      STANDSTILL,
    ]
}

function* ofRestarts(one: Process, truth: Truth, as: As, world: World): Generator<Happening> {
  const { name } = one
  if (one.incarnation >= 3 || one.old) return
  const fresh = {
    incarnation: one.incarnation + 1,
    work: [],
    queued: 0,
    arrivals: 0,
    cameAt: null,
    old: false,
    lag: 0,
  }
  yield [`${name} restarts and keeps its state`, as(() => ({ ...fresh, taken: truth.own }))]
  // The own state is read of the first: what it forgets is forgotten.
  if (name !== 'a') return
  const restarted = as(() => fresh)
  if (truth.own !== 'ready')
    yield [`${name} restarts and forgets`, setOwn(restarted, 'ready', 'reload')]
  if (!may(world, 'state-file')) return
  for (const own of ['drain', 'maint'] as const) {
    const setter = truth.had[own]
    if (setter === undefined || own === truth.own) continue
    // A state that another client had set is that client's again.
    const word = isAbove(own, truth.own) ? 'higher' : 'lower'
    yield [`${name} restarts with the ${word} ${own} of before`, setOwn(restarted, own, setter)]
  }
}
