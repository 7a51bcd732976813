import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import {
  drain,
  fileTickets,
  findOrphans,
  isDrainableError,
  resumeDrain,
  restore,
  stepDrain,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { fakeLease, fakeProvider } from 'drainable/testing'
import { setUp, thrown, web1, web2 } from '../core/set-up.js'
import { plainStore, temporaryFolder, unlistedStore } from './set-up.js'

const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A process of this machine that does nothing until it is killed. */
async function process2(): Promise<{ pid: number; kill: () => Promise<void> }> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  children.push(child)
  await once(child, 'spawn')
  return {
    pid: child.pid!,
    kill: async () => {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** A drain of web1 that its process has left, and the store as another process finds it. */
async function left(change: (owner: Ticket['owner']) => Partial<Ticket['owner']>): Promise<
  ReturnType<typeof setUp> & {
    readonly map: Map<string, unknown>
    readonly store: TicketStore
  }
> {
  const at = setUp()
  const map = new Map<string, unknown>()
  const tickets = plainStore(map)
  const { clock, lb } = at
  await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job-1', owner: 'deploy 7' }))
  const ticket = map.get('job-1') as Ticket
  map.set('job-1', { ...ticket, owner: { ...ticket.owner, ...change(ticket.owner) } })
  return { ...at, map, store: plainStore(map) }
}

/** The number of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = await process2()
  await child.kill()
  return child.pid
}

describe('findOrphans', () => {
  test('lists a drain whose process ended: its owner, its time, its holds', async () => {
    const pid = await deadPid()
    const { clock, lb, store } = await left(() => ({ pid, started: '1' }))
    lb.occupy(web1, 2)
    const [orphan, ...more] = await findOrphans(store, lb, { clock })
    expect(more).toEqual([])
    expect(orphan!.ticket.id).toBe('job-1')
    expect(orphan!.owner.state).toBe('gone')
    expect(orphan!.owner.text).toContain(`process ${pid} on`)
    expect(orphan!.owner.text).toContain('deploy 7')
    const [member] = orphan!.members
    expect(member).toMatchObject({
      ref: web1,
      own: 'maint',
      owes: true,
      phase: 'draining',
      active: 2,
    })
    expect(member!.since).toBe(orphan!.ticket.startedAt)
    expect(member!.why[0]).toMatchObject({ code: 'in-flight', count: 2 })
  })

  test('lists what can be resumed and undone', async () => {
    const pid = await deadPid()
    const { clock, lb, map, store } = await left(() => ({ pid, started: '1' }))
    const [orphan] = await findOrphans(store, lb, { clock })
    const resumed = resumeDrain(lb, orphan!.ticket, { clock, tickets: store })
    expect((await clock.runUntil(resumed.done)).outcome).toBe('idle')
    await resumed.release()
    // It is this process's drain now.
    expect(await findOrphans(store, lb, { clock })).toEqual([])
    await clock.runUntil(restore(lb, orphan!.ticket, { clock, tickets: store }))
    expect(lb.state(web1)).toBe('ready')
    expect(map.has('job-1')).toBe(false)
  })

  test('does not list a drain of a living process until it is killed', async () => {
    const other = await process2()
    const { clock, lb, store } = await left(() => ({ pid: other.pid, started: null }))
    expect(await findOrphans(store, lb, { clock })).toEqual([])
    await other.kill()
    expect(await findOrphans(store, lb, { clock })).toHaveLength(1)
  })

  test('does not list our own drains', async () => {
    const { clock, lb, store } = await left(() => ({}))
    expect(await findOrphans(store, lb, { clock })).toEqual([])
  })

  test.runIf(process.platform === 'linux')('takes a reused process number for gone', async () => {
    const { clock, lb, store } = await left(() => ({ started: '1' }))
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.owner).toMatchObject({ state: 'gone' })
    expect(orphan!.owner.text).toContain('another process has its pid now')
  })

  test.for([
    ['another machine', { host: 'elsewhere' }],
    ['another boot', { boot: 'before' }],
    ['another container', { space: 'pid:[1]' }],
    ['stepped from', { pid: null }],
  ] as const)('lists what can not be told of %s, and says so', async ([words, owner]) => {
    const { clock, lb, store } = await left(() => owner)
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.owner.state).toBe('unknown')
    expect(orphan!.owner.text).toContain(words)
  })

  test('lists one of another machine once its lease is over', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    const lease = fakeLease({ clock })
    const ticket = (await store.get('job-1')) as Ticket
    await store.set('job-1', { ...ticket, lease: { name: lease.name, fence: 1 } })
    const context = { signal: new AbortController().signal, clock }
    await lease.acquire('the roller elsewhere', 15_000, context)
    expect(await findOrphans(store, lb, { clock, lease })).toEqual([])
    expect(await findOrphans(store, lb, { clock })).toMatchObject([{ owner: { state: 'unknown' } }])
    await clock.advance(15_001)
    const [orphan] = await findOrphans(store, lb, { clock, lease })
    expect(orphan!.owner).toMatchObject({
      state: 'gone',
      text: expect.stringMatching(/no process has the lease fake lease/) as unknown,
    })
    expect(lease.held).toBeNull()
    // A ticket that was written under another lease, or none, is not judged by it.
    await store.set('job-1', { ...ticket, lease: { name: 'another lease', fence: 1 } })
    const [other] = await findOrphans(store, lb, { clock, lease })
    expect(other!.owner.state).toBe('unknown')
  })

  test('rejects with a lease whose engine fails, and lists nothing', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    const lease = fakeLease({ clock })
    const ticket = (await store.get('job-1')) as Ticket
    await store.set('job-1', { ...ticket, lease: { name: lease.name, fence: 1 } })
    lease.failNext('throw')
    await expect(findOrphans(store, lb, { clock, lease })).rejects.toThrow(/lease/)
  })

  test('has no process for a drain by steps', async () => {
    const { clock, lb } = setUp()
    const map = new Map<string, unknown>()
    const store = plainStore(map)
    const step = await clock.runUntil(stepDrain(lb, { target: web1 }, { clock }))
    await store.set(step.ticket.id, step.ticket)
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.owner.state).toBe('unknown')
  })

  test('has nothing owed for a member that another client made ready', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    lb.setBehind(web1, 'ready')
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.members[0]).toMatchObject({ own: 'ready', owes: false, phase: 'active' })
  })

  test('has nothing owed for an open member that its drain had found out', async () => {
    const { clock, lb } = setUp()
    const map = new Map<string, unknown>()
    const store = plainStore(map)
    lb.setBehind(web1, 'drain')
    await clock.runUntil(drain(lb, web1, { clock, tickets: store, id: 'job-1' }))
    expect(lb.state(web1)).toBe('maint')
    const ticket = map.get('job-1') as Ticket
    map.set('job-1', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    lb.setBehind(web1, 'ready')
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.members[0]).toMatchObject({ own: 'ready', owes: false })
  })

  test('has no state for a member that is gone', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    lb.setBehind(web1, 'gone')
    const [orphan] = await findOrphans(store, lb, { clock })
    expect(orphan!.members[0]).toMatchObject({ own: null, owes: false })
  })

  test('leaves out tickets of other balancers', async () => {
    const { clock, store } = await left(() => ({ host: 'elsewhere' }))
    const other = fakeProvider({ pools: { web: ['web1'] }, clock, instance: 'another' })
    expect(await findOrphans(store, other, { clock })).toEqual([])
  })

  test.for([
    ['may hold a member of this one', 'maint', [[{ ...web1, balancer: 'a' }]]],
    ['changed nothing', null, []],
  ] as const)('tells of a drain over several balancers that %s', async ([, set, told]) => {
    const { clock, lb, map, store } = await left(() => ({ host: 'elsewhere' }))
    const ticket = map.get('job-1') as Ticket
    const members = ticket.members.map((one) => ({
      ...one,
      ref: { ...web1, balancer: 'a' },
      ...{ set, earlier: [], doubted: [], intended: null, late: [] },
    }))
    const parts = ticket.parts.map((part) => ({ ...part, balancer: 'a' }))
    map.set('job-1', {
      ...ticket,
      members,
      parts: [...parts, { ...parts[0]!, balancer: 'b', instance: 'b' }],
    })
    const held: unknown[] = []
    const onElsewhere = (_: Ticket, refs: unknown): unknown => held.push(refs)
    expect(await findOrphans(store, lb, { clock, onElsewhere })).toEqual([])
    expect(held).toEqual(told)
  })

  test('looks once for all of them, however many', async () => {
    const { clock, lb, map, store } = await left(() => ({ host: 'elsewhere' }))
    const ticket = map.get('job-1') as Ticket
    for (let i = 2; i <= 50; i += 1) map.set(`job-${i}`, { ...ticket, id: `job-${i}` })
    const before = lb.requests.length
    expect(await findOrphans(store, lb, { clock })).toHaveLength(50)
    expect(lb.requests.slice(before).filter((call) => call.verb === 'observe')).toHaveLength(1)
  })

  test('throws an error with the name of a damaged ticket, or calls back', async () => {
    const { clock, lb, map, store } = await left(() => ({ host: 'elsewhere' }))
    const ticket = map.get('job-1') as Ticket
    map.set('job-2', { ...ticket, id: 'job-2', members: 7 })
    map.set('notes', { hello: 'world' })
    const error = await thrown(findOrphans(store, lb, { clock }))
    expect(isDrainableError(error, 'TICKET_INVALID') && error.message).toContain("'job-2'")
    const damaged: string[] = []
    const found = await findOrphans(store, lb, { clock, onUnreadable: (id) => damaged.push(id) })
    expect(found.map((orphan) => orphan.ticket.id)).toEqual(['job-1'])
    expect(damaged).toEqual(['job-2'])
  })

  test('refuses a store that lists nothing', async () => {
    const { clock, lb, map } = await left(() => ({ host: 'elsewhere' }))
    const error = await thrown(findOrphans(unlistedStore(map), lb, { clock }))
    expect(isDrainableError(error, 'UNSUPPORTED') && error.message).toContain('keys()')
  })

  test('ends with an abort', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    const reason = new Error('enough')
    expect(await thrown(findOrphans(store, lb, { clock, signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    )
  })

  test('reports a failing store or balancer', async () => {
    const { clock, lb, store } = await left(() => ({ host: 'elsewhere' }))
    const broken = { ...store, get: () => Promise.reject(new Error('disk full')) }
    expect(await thrown(findOrphans(broken, lb, { clock }))).toMatchObject({ message: 'disk full' })
    await lb.close()
    expect(await thrown(findOrphans(store, lb, { clock }))).toSatisfy((e) => isDrainableError(e))
  })

  test.for<{ word: string; store?: null; lb?: null; options?: object }>([
    { word: 'store', store: null },
    { word: 'provider', lb: null },
    { word: 'verbose', options: { verbose: true } },
  ])('refuses a wrong $word', async ({ word, store, lb, options = {} }) => {
    const error = await thrown(
      findOrphans(
        (store === null ? null : plainStore(new Map())) as TicketStore,
        (lb === null ? null : setUp().lb) as ReturnType<typeof setUp>['lb'],
        options,
      ),
    )
    expect(isDrainableError(error, 'INVALID_OPTIONS') && error.message).toContain(word)
  })

  test('finds tickets in files', async () => {
    await using folder = await temporaryFolder()
    const { clock, lb, map } = await left(() => ({ host: 'elsewhere' }))
    await fileTickets(folder.path).set('job-1', map.get('job-1'))
    const found = await findOrphans(fileTickets(folder.path), lb, { clock })
    expect(found.map((orphan) => orphan.ticket.id)).toEqual(['job-1'])
  })

  test('tells each of several members apart', async () => {
    const { clock, lb } = setUp()
    const map = new Map<string, unknown>()
    const store = plainStore(map)
    const policy = { clock, tickets: store, keepReady: 0, id: 'two' }
    await clock.runUntil(drain(lb, [web1, web2], policy))
    const ticket = map.get('two') as Ticket
    map.set('two', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    lb.setBehind(web2, 'ready')
    const [orphan] = await findOrphans(store, lb, { clock })
    const owed = orphan!.members.map(({ ref, own, owes }) => [ref.member, own, owes])
    expect(owed).toEqual([
      ['web1', 'maint', true],
      ['web2', 'ready', false],
    ])
  })
})
