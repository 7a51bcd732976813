import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  drain,
  fileTickets,
  fromUnstorage,
  restore,
  resumeDrain,
  startDrain,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { only, setUp, thrown, web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'

/** What another process would read: JSON, nothing else. */
function json<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

function memoryStore(): TicketStore & { readonly map: Map<string, unknown> } {
  const map = new Map<string, unknown>()
  return {
    map,
    get: async (key) => map.get(key),
    set: async (key, value) => map.set(key, json(value)),
    delete: async (key) => map.delete(key),
  }
}

describe('tickets', () => {
  test('are written before and after each change, intended then applied', async () => {
    const { clock, lb } = setUp()
    const seen: string[] = []
    const onTicket = (ticket: Ticket): void => {
      const { set, intended } = ticket.members[0]!
      const next = intended?.kind === 'hold' ? `, ${intended.to} intended` : ''
      seen.push(`${set ?? 'none'} set${next} -> ${lb.state(web1)}`)
    }
    await clock.runUntil(drain(lb, web1, { clock, onTicket }))
    expect(seen[0]).toBe('none set, drain intended -> ready')
    expect(seen[1]).toMatch(/^drain set/)
    expect(seen).toContain('drain set, maint intended -> drain')
    expect(seen.at(-1)).toBe('maint set -> maint')
  })

  test('in a store that keeps nothing end the drain before any change', async () => {
    const { clock, lb } = setUp()
    const tickets: TicketStore = {
      get: async () => undefined,
      set: async () => false,
      delete: async () => true,
    }
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock, tickets })))
    expect(error).toMatchObject({ code: 'TICKET_INVALID' })
    expect(lb.state(web1)).toBe('ready')
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
  })

  test('resume at any stage to idle, on a provider that forgot', async () => {
    const { clock, lb } = setUp({ instance: 'lb', capabilities: { lateBound: 500 } })
    const tickets: Ticket[] = []
    await clock.runUntil(
      drain(lb, web1, { clock, timeout: '1h', onTicket: (t) => void tickets.push(json(t)) }),
    )
    expect(tickets.length).toBeGreaterThanOrEqual(4)
    for (const ticket of tickets) {
      for (const state of ['ready', 'drain', 'maint'] as const) {
        const other = setUp({ instance: 'lb', capabilities: { lateBound: 500 } })
        if (state !== 'ready') other.lb.setBehind(web1, state)
        const applied = ticket.members[0]!.set
        if (applied !== null && state === 'ready') continue // that would be overruled
        if (applied === 'maint' && state !== 'maint') continue
        const run = resumeDrain(other.lb, ticket, { clock: other.clock })
        const report = await other.clock.runUntil(run.done)
        expect(report.outcome).toBe('idle')
        expect(only(report).wasAdmin).toBe('ready')
        await run.release()
      }
    }
  })

  test('restore what was applied, not what was only intended', async () => {
    const { clock, lb } = setUp()
    const tickets: Ticket[] = []
    await clock.runUntil(drain(lb, web1, { clock, onTicket: (t) => void tickets.push(json(t)) }))
    const intended = tickets[0]!
    const report = await clock.runUntil(restore(lb, intended, { clock }))
    expect(only(report).error?.code).toBe('CONFLICT')
    expect(lb.state(web1)).toBe('maint')
    await clock.runUntil(restore(lb, tickets.at(-1)!, { clock }))
    expect(lb.state(web1)).toBe('ready')
  })

  test('restore an intended seal in either state', async () => {
    for (const found of ['drain', 'maint'] as const) {
      const { clock, lb } = setUp()
      const tickets: Ticket[] = []
      await clock.runUntil(drain(lb, web1, { clock, onTicket: (t) => void tickets.push(json(t)) }))
      const sealing = tickets.find(({ members }) => {
        const { intended } = members[0]!
        return intended?.kind === 'hold' && intended.to === 'maint'
      })
      lb.setBehind(web1, found)
      const report = await clock.runUntil(restore(lb, sealing!, { clock }))
      expect(only(report).error).toBeUndefined()
      expect(lb.state(web1)).toBe('ready')
    }
  })

  test('leave alone what another client changed since', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    await run.release()
    lb.setBehind(web1, 'maint')
    const report = await clock.runUntil(restore(lb, await run.ticket, { clock }))
    expect(only(report).error?.code).toBe('CONFLICT')
    expect(lb.state(web1)).toBe('maint')
  })

  test('restore a member that was drained before to drained', async () => {
    const { clock, lb } = setUp()
    lb.setBehind(web1, 'drain')
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    expect(lb.state(web1)).toBe('maint')
    const report = await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('drain')
    expect(only(report).error).toBeUndefined()
  })

  test('wait under drain for the first check after maint', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.setHealth(web1, 'unknown')
    const undone = run.restore()
    await clock.advance(5_000)
    expect(lb.state(web1)).toBe('drain')
    lb.setHealth(web1, 'up')
    await clock.runUntil(undone)
    expect(lb.state(web1)).toBe('ready')
  })

  test('keep the first undo through a second run under the same id', async () => {
    const { clock, lb } = setUp()
    const tickets = memoryStore()
    const first = startDrain(lb, web1, { clock, tickets, id: 'deploy' })
    await clock.runUntil(first.done)
    await first.release() // crashed before ready()
    await using second = startDrain(lb, web1, { clock, tickets, id: 'deploy' })
    const report = await clock.runUntil(second.done)
    expect(only(report).wasAdmin).toBe('ready')
    await clock.runUntil(restore(lb, await second.ticket, { clock, tickets }))
    expect(lb.state(web1)).toBe('ready')
    expect(tickets.map.has('deploy')).toBe(false)
  })

  describe('of a run that crashed while its hold was under way', () => {
    const lateBound = 5_000

    /** Another process finds the ticket of the intention. */
    async function crashed(): Promise<ReturnType<typeof setUp> & { tickets: TicketStore }> {
      const seen: Ticket[] = []
      const first = setUp({ instance: 'lb' })
      const onTicket = (ticket: Ticket): void => void seen.push(json(ticket))
      await first.clock.runUntil(drain(first.lb, web1, { clock: first.clock, id: 'a', onTicket }))
      const tickets = memoryStore()
      tickets.map.set('a', seen[0])
      return { tickets, ...setUp({ instance: 'lb', capabilities: { lateBound } }) }
    }

    test('let a second run of the same id take back the late hold', async () => {
      const { clock, lb, tickets } = await crashed()
      let ticks = 0
      // No moment of a real clock comes twice, so the look before the first change is not the first look.
      const running = {
        now: () => clock.now() + (ticks += 0.001),
        setTimeout: clock.setTimeout.bind(clock),
      }
      const observe = lb.observe.bind(lb)
      let looks = 0
      lb.observe = async (...args) => {
        const snapshot = await observe(...args)
        looks += 1
        if (looks === 1) lb.setBehind(web1, 'drain')
        return snapshot
      }
      const run = startDrain(lb, web1, { clock: running, tickets, id: 'a' })
      const report = await clock.runUntil(run.done)
      expect(only(report)).toMatchObject({ outcome: 'idle', wasAdmin: 'ready' })
      expect(only(await clock.runUntil(run.restore())).outcome).toBe('restored')
      expect(lb.state(web1)).toBe('ready')
    })

    test('refuse their id to a drain of another member', async () => {
      const { clock, lb, tickets } = await crashed()
      const error = await clock.runUntil(thrown(drain(lb, web2, { clock, tickets, id: 'a' })))
      expect(error).toMatchObject({ code: 'TICKET_INVALID' })
    })
  })

  test('are refused by name if malformed or of another balancer', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    const other = setUp({ instance: 'elsewhere' })
    expect(() => resumeDrain(other.lb, ticket, { clock })).toThrow(/elsewhere/)
    expect(await thrown(restore(lb, { ...ticket, v: 2 } as never, { clock }))).toMatchObject({
      code: 'TICKET_INVALID',
    })
    expect(await thrown(restore(lb, {} as never, { clock }))).toMatchObject({
      code: 'TICKET_INVALID',
    })
  })

  test('in files are whole, private, and gone after the undo', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'drainable-'))
    try {
      const tickets = fileTickets(join(folder, 'tickets'))
      const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } }) // files take real time
      await using run = startDrain(lb, web1, { tickets, id: 'maint-1', settle: '0ms' })
      expect((await run.done).outcome).toBe('idle')
      const kept = (await tickets.get('maint-1')) as Ticket
      expect(kept.id).toBe('maint-1')
      expect((await stat(join(folder, 'tickets', 'maint-1.json'))).mode & 0o777).toBe(0o600)
      expect(await readdir(join(folder, 'tickets'))).toEqual(['maint-1.json'])
      await restore(lb, kept, { tickets })
      expect(await tickets.get('maint-1')).toBeUndefined()
      expect(await readdir(join(folder, 'tickets'))).toEqual([])
      await expect(tickets.get('../etc/passwd')).rejects.toMatchObject({ code: 'TICKET_INVALID' })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('can be stored in unstorage', async () => {
    const map = new Map<string, unknown>()
    const tickets = fromUnstorage({
      getItem: async (key) => map.get(key) ?? null,
      setItem: async (key, value) => void map.set(key, value),
      removeItem: async (key) => void map.delete(key),
    })
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'one' }))
    expect(map.has('one')).toBe(true)
  })
})

describe('a store slower than the drain', () => {
  test('stops a change that was given up while its ticket was written', async () => {
    const { clock, lb } = setUp()
    let keep = (): void => undefined
    const onTicket = (): Promise<void> =>
      new Promise((resolve) => {
        keep = resolve
      })
    const run = startDrain(lb, web1, { clock, timeout: '5s', onTicket })
    await clock.advance(10_000)
    keep()
    await clock.advance(10_000)
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
    expect(lb.state(web1)).toBe('ready')
    keep()
    expect((await clock.runUntil(run.done)).outcome).toBe('timeout')
    await run.release()
  })
})

describe('a released drain', () => {
  test('has a ticket of what it did', async () => {
    const { clock, lb } = setUp()
    const tickets = memoryStore()
    const set = tickets.set.bind(tickets)
    tickets.set = async (key, value) => {
      for (let i = 0; i < 5; i += 1) await nextTurn()
      return set(key, value)
    }
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, tickets, id: 'slow' })
    await clock.runUntil(run.inForce)
    await run.release()
    const ticket = tickets.map.get('slow') as Ticket
    expect(ticket.members[0]).toMatchObject({ set: 'drain', intended: null })
  })

  test('does not wait for a store that hangs', async () => {
    const { clock, lb } = setUp()
    const tickets = memoryStore()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, tickets, id: 'hangs' })
    await clock.runUntil(run.inForce)
    tickets.set = () => new Promise(() => undefined)
    await clock.runUntil(run.release(), 5_000)
    expect(run.report().outcome).toBe('aborted')
  })
})

describe('stepDrain', () => {
  test('sends at most one change a step, announced first', async () => {
    const { clock, lb } = setUp()
    const end = lb.occupy(web1)
    let step = await stepped(lb, { target: web1, policy: { timeout: '10m' } }, { clock })
    expect(step.againIn).toBe(0)
    expect(lb.state(web1)).toBe('ready')
    expect(step.ticket.members[0]).toMatchObject({ set: null, intended: { to: 'drain' } })
    for (let i = 0; i < 30 && step.outcome === undefined; i += 1) {
      const before = lb.requests.length
      const announced = step.ticket.members[0]!.intended
      await clock.advance(Math.max(1, step.againIn))
      if (i === 5) end()
      step = await stepped(lb, json(step.ticket), { clock })
      const sent = lb.requests.slice(before).flatMap(({ changes = [] }) => changes)
      expect(sent.length).toBeLessThanOrEqual(1)
      for (const { kind } of sent) expect(announced).toMatchObject({ kind })
    }
    expect(step.outcome).toBe('idle')
    expect(lb.state(web1)).toBe('maint')
    const report = await clock.runUntil(restore(lb, step.ticket, { clock }))
    expect(only(report).error).toBeUndefined()
    expect(lb.state(web1)).toBe('ready')
  })
})

test('a real ticket survives a round trip through JSON', async () => {
  const { clock, lb } = setUp()
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(2_000)
  const ticket = await run.ticket
  await run.release()
  expect(JSON.parse(JSON.stringify(ticket))).toEqual(ticket)
})
