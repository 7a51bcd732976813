/** Every verb that asks something of the caller's, as a test plays it. */
import {
  drain,
  findOrphans,
  plan,
  ready,
  reconcile,
  restore,
  resumeDrain,
  resumeRoll,
  startDrain,
  startRoll,
  type Drain,
  type Roll,
  type Ticket,
} from 'drainable'
import type { DesiredMember, Why } from 'drainable'
import type { World } from './world.js'

/** A call under way. */
export interface UnderWay {
  /** Its end, whatever it says. */
  readonly done: Promise<unknown>
  readonly why?: () => readonly Why[]
  readonly close?: () => Promise<unknown>
}

/** One verb, begun in a world that is prepared for it. */
export interface Verb {
  readonly name: string
  /** What it holds is to stay held. */
  readonly keeps?: boolean
  /** What happens before: none of its calls hangs. */
  readonly before?: (world: World) => Promise<Ticket | undefined>
  readonly begin: (world: World, signal: AbortSignal, ticket: Ticket) => UnderWay
}

const web1 = { pool: 'web', member: 'web1' }
const everywhere = [
  { ...web1, balancer: 'a' },
  { ...web1, balancer: 'b' },
]
const quick = { settle: '0ms', pace: '500ms' } as const
const id = 'job'

function ofHandle(run: Drain | Roll): UnderWay {
  return { done: run.done, why: () => run.why(), close: () => run.close() }
}

/** The options of a call with a store that nothing happens to. */
function plain(world: World) {
  const { kept } = world
  const tickets = {
    get: async (key: string) => kept.get(key),
    set: async (key: string, value: unknown) => kept.set(key, JSON.parse(JSON.stringify(value))),
    delete: async (key: string) => kept.delete(key),
    keys: () => kept.keys(),
  }
  return { clock: world.clock, tickets, id, ...quick }
}

/** What another process would find. */
function left(world: World): Ticket {
  const ticket = world.kept.get(id) as Ticket
  const found = { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } }
  world.kept.set(id, found)
  return found
}

async function drained(world: World, over: 'one' | 'both'): Promise<Ticket> {
  const [lb, target] = over === 'one' ? [world.balancer(), web1] : [world.both(), everywhere]
  const run = startDrain(lb, target, plain(world))
  await world.clock.runUntil(run.done)
  await world.clock.runUntil(run.release())
  return left(world)
}

/** A roll of which one server is left drained: its function failed. */
async function rolled(world: World): Promise<Ticket> {
  const act = (): Promise<void> => Promise.reject(new Error('exit 1'))
  const run = startRoll(world.balancer(), { pool: 'web' }, { ...plain(world), act })
  await world.clock.runUntil(run.done)
  return left(world)
}

/** The options of a call whose store may not answer. */
function asked(world: World, signal: AbortSignal, lists = true) {
  const { clock, hear: onEvent } = world
  return { clock, signal, onEvent, tickets: world.store(lists) }
}

/** It is drained, and at once put back: an undo asks too. */
function undone(run: Drain): UnderWay {
  const done = run.done.then(async (report) => {
    const undo = report.outcome === 'idle' ? await run.restore() : undefined
    return { outcome: undo?.outcome ?? report.outcome, report, undo }
  })
  return { done, why: () => run.why(), close: () => run.close() }
}

const act = (): Promise<void> => Promise.resolve()

export const verbs: readonly Verb[] = [
  {
    name: 'a drain with its undo',
    begin: (world, signal) => {
      const options = { ...asked(world, signal), id, ...quick }
      return undone(startDrain(world.balancer(), web1, options))
    },
  },
  {
    name: 'a drain in a store without keys()',
    begin: (world, signal) => {
      const options = { ...asked(world, signal, false), id, ...quick }
      return undone(startDrain(world.balancer(), web1, options))
    },
  },
  {
    name: 'a drain that puts back on abort',
    begin: (world, signal) => {
      const options = { ...asked(world, signal), onAbort: 'restore', id, ...quick } as const
      return ofHandle(startDrain(world.balancer(), web1, options))
    },
  },
  {
    name: 'a drain with onTicket',
    begin: (world, signal) => {
      const { clock, onTicket, hear: onEvent } = world
      const options = { clock, signal, onTicket, onEvent, ...quick }
      return undone(startDrain(world.balancer(), web1, options))
    },
  },
  {
    name: 'resumeDrain()',
    before: (world) => drained(world, 'one'),
    begin: (world, signal, ticket) =>
      undone(resumeDrain(world.balancer(), ticket, asked(world, signal))),
  },
  {
    name: 'restore()',
    before: (world) => drained(world, 'one'),
    begin: (world, signal, ticket) => ({
      done: restore(world.balancer(), ticket, asked(world, signal)),
    }),
  },
  {
    name: 'restore() of a ticket without members',
    before: async (world) => ({ ...(await drained(world, 'one')), members: [] }),
    begin: (world, signal, ticket) => ({
      done: restore(world.balancer(), ticket, asked(world, signal)),
    }),
  },
  {
    name: 'a drain over two balancers with its undo',
    begin: (world, signal) => {
      const options = { ...asked(world, signal), id, ...quick }
      return undone(startDrain(world.both(), everywhere, options))
    },
  },
  {
    name: 'a drain over two balancers with onTicket',
    begin: (world, signal) => {
      const { clock, onTicket, hear: onEvent } = world
      const options = { clock, signal, onTicket, onEvent, ...quick }
      return undone(startDrain(world.both(), everywhere, options))
    },
  },
  {
    name: 'resumeDrain() over two balancers',
    before: (world) => drained(world, 'both'),
    begin: (world, signal, ticket) =>
      undone(resumeDrain(world.both(), ticket, asked(world, signal))),
  },
  {
    name: 'restore() over two balancers',
    before: (world) => drained(world, 'both'),
    begin: (world, signal, ticket) => ({
      done: restore(world.both(), ticket, asked(world, signal)),
    }),
  },
  {
    name: 'ready() after a drain',
    begin: (world, signal) => {
      const lb = world.balancer()
      const { clock } = world
      const run = async (): Promise<unknown> => {
        await drain(lb, web1, { ...asked(world, signal), id, ...quick })
        const { members } = await ready(lb, web1, { clock, signal })
        return { outcome: 'restored', members }
      }
      return { done: run() }
    },
  },
  {
    name: 'a roll under a lease',
    begin: (world, signal) => {
      const { lease } = world
      const options = { ...asked(world, signal), act, lease, id, ...quick }
      return ofHandle(startRoll(world.balancer(), { pool: 'web' }, options))
    },
  },
  {
    name: 'a roll that puts back on abort',
    begin: (world, signal) => {
      const options = { ...asked(world, signal), act, onAbort: 'restore', id, ...quick } as const
      return ofHandle(startRoll(world.balancer(), { pool: 'web' }, options))
    },
  },
  {
    name: 'a roll with onTicket',
    begin: (world, signal) => {
      const { clock, onTicket, hear: onEvent } = world
      const options = { clock, signal, onTicket, onEvent, act, ...quick }
      return ofHandle(startRoll(world.balancer(), { pool: 'web' }, options))
    },
  },
  {
    name: 'a roll over two balancers',
    begin: (world, signal) => {
      const options = { ...asked(world, signal), act, id, ...quick }
      return ofHandle(startRoll(world.both(), everywhere, options))
    },
  },
  {
    name: 'resumeRoll() under a lease',
    before: rolled,
    begin: (world, signal, ticket) => {
      const options = { ...asked(world, signal), act, lease: world.lease }
      return ofHandle(resumeRoll(world.balancer(), ticket, options))
    },
  },
  {
    name: 'restore() of a roll',
    before: rolled,
    begin: (world, signal, ticket) => ({
      done: restore(world.balancer(), ticket, asked(world, signal)),
    }),
  },
  {
    name: 'findOrphans() with a lease',
    before: async (world) => {
      const ticket = await drained(world, 'one')
      world.kept.set(id, { ...ticket, lease: { name: world.lease.name, fence: 1 } })
      return ticket
    },
    begin: (world, signal) => {
      const { clock, lease } = world
      return { done: findOrphans(world.store(), world.balancer(), { clock, lease, signal }) }
    },
  },
  {
    name: 'plan() of a drain over two balancers',
    begin: (world, signal) => {
      const { clock } = world
      const options = { clock, signal, tickets: world.store(), id, ...quick }
      return { done: plan(world.both(), everywhere, options) }
    },
  },
  {
    name: 'plan() of a roll',
    begin: (world, signal) => {
      const { clock } = world
      const options = { clock, signal, tickets: world.store(), id, canary: 1, ...quick }
      return { done: plan(world.balancer(), { pool: 'web' }, options) }
    },
  },
  {
    name: 'reconcile() under a lease',
    keeps: true,
    before: async (world) => {
      const { clock } = world
      await using loop = reconcile(world.balancer(), { pools, owns, ...plainStore(world), clock })
      loop.set(servers)
      await world.clock.runUntil(loop.settled())
      return undefined
    },
    begin: (world, signal) => {
      const { clock, lease } = world
      const tickets = world.store()
      const options = { pools, owns, clock, signal, tickets, lease, ...quick }
      const loop = reconcile(world.balancer(), options)
      loop.on('fault', world.hear)
      loop.set([
        { ...servers[1]!, state: 'drain' },
        { ...servers[0]!, state: 'serve' },
        servers[3]!,
      ])
      const why = (): readonly Why[] => loop.status().flatMap((row) => row.why)
      const done = loop.settled({ signal }).then(() => loop.close())
      done.catch(() => undefined)
      return { done, why, close: () => loop.close() }
    },
  },
]

const pools = ['web']
const owns = (): boolean => true

const servers: readonly DesiredMember[] = [
  { pool: 'web', member: 'web1', state: 'drain' },
  { pool: 'web', member: 'web2', state: 'serve' },
  { pool: 'web', member: 'web4', address: '10.0.0.9', port: 80, state: 'serve' },
  { pool: 'web', member: 'web5', address: '10.0.0.10', port: 80, state: 'serve' },
]

/** The store of a controller that nothing happens to. */
function plainStore(world: World) {
  const { tickets } = plain(world)
  return { tickets, ...quick }
}
