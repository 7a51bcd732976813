import { describe, expect, test } from 'vitest'
import { resumeRoll, roll, startRoll, type Clock, type Ticket } from 'drainable'
import { fakeLease } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { thrown } from '../core/set-up.js'
import { actor, setUp, web } from './set-up.js'

describe('a roll under a lease', () => {
  test('has it while it rolls, and then gives it up', async () => {
    const { clock, lb } = setUp(3)
    const lease = fakeLease({ clock })
    const tickets = jsonStore()
    const fences: unknown[] = []
    const { act } = actor(clock, async () => {
      expect(lease.held?.holder).toContain('deploy on ')
      fences.push(((await tickets.get('job')) as Ticket).lease)
    })
    await clock.runUntil(roll(lb, web, { act, clock, lease, tickets, id: 'job', owner: 'deploy' }))
    expect(fences).toEqual(Array.from({ length: 3 }, () => ({ name: 'fake lease', fence: 1 })))
    expect(lease.held).toBeNull()
  })

  test('has it for as long as told, and a resume waits no longer', async () => {
    const { clock, lb } = setUp(3)
    const lease = fakeLease({ clock })
    const tickets = jsonStore()
    const ttls = new Set<number>()
    const told = {
      name: lease.name,
      acquire: (...args: Parameters<typeof lease.acquire>) => {
        ttls.add(args[1])
        return lease.acquire(...args)
      },
      renew: (...args: Parameters<typeof lease.renew>) => {
        ttls.add(args[1])
        return lease.renew(...args)
      },
      release: () => Promise.reject(new Error('dead')),
    }
    const { act } = actor(clock, async () => {
      throw new Error('exit 1')
    })
    const run = startRoll(lb, web, { act, clock, tickets, id: 'job', lease: told, leaseTtl: '3s' })
    await clock.runUntil(run.done)
    expect([...ttls]).toEqual([3_000])
    const from = clock.now()
    const next = actor(clock)
    const ticket = (await tickets.get('job')) as Ticket
    const options = { act: next.act, clock, tickets, lease, leaseTtl: '3s' } as const
    const resumed = resumeRoll(lb, ticket, options)
    await clock.runUntil(resumed.ticket)
    expect(clock.now() - from).toBeLessThan(4_000)
    expect((await clock.runUntil(resumed.done)).outcome).toBe('done')
  })

  test('names a lease that does not answer in why()', async () => {
    const { clock, lb } = setUp(3)
    const silent = () => new Promise<never>(() => undefined)
    const lease = Object.assign(fakeLease({ clock }), { acquire: silent })
    const run = startRoll(lb, web, { act: actor(clock).act, clock, lease })
    await clock.advance(3_000)
    expect(run.why()).toMatchObject([
      {
        code: 'lease',
        text: 'the lease fake lease has not answered for 3 s',
        hint: 'check its engine: without the lease the roll changes nothing more',
      },
    ])
    await clock.runUntil(run.close(), 10_000)
  })

  test('is refused with the holder named before it asks the balancer', async () => {
    const { clock, lb } = setUp(3)
    const lease = fakeLease({ clock })
    lease.seize('the other one')
    const { act } = actor(clock)
    const error = await thrown(clock.runUntil(roll(lb, web, { act, clock, lease })))
    expect(error).toMatchObject({
      code: 'NOT_LEADER',
      message: expect.stringMatching(/held by 'the other one'/) as unknown,
    })
    expect(lb.requests).toEqual([])
  })

  test('rolls for one of two that ask at once', async () => {
    const { clock, lb } = setUp(4)
    const lease = fakeLease({ clock })
    const { act, most, calls } = actor(clock)
    const both = [1, 2].map((n) => startRoll(lb, web, { act, clock, lease, id: `job-${n}` }))
    const reports = await clock.runUntil(Promise.all(both.map(({ done }) => done)))
    expect(reports.map(({ outcome }) => outcome).sort()).toEqual(['done', 'stopped'])
    expect(most()).toBe(1)
    expect(calls).toHaveLength(4)
  })

  test('changes nothing once it is lost, and tells the function', async () => {
    const { clock, lb, refs } = setUp(3)
    const lease = fakeLease({ clock })
    const told: unknown[] = []
    const act = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
      signal.addEventListener('abort', () => told.push(signal.reason))
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 60_000))
    }
    const run = startRoll(lb, web, { act, clock, lease, onAbort: 'restore' })
    await clock.advance(10_000)
    expect(lb.state(refs[0]!)).toBe('maint')
    const before = lb.requests.filter(({ verb }) => verb === 'apply').length
    lease.seize('the other one')
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({
      outcome: 'stopped',
      error: { code: 'NOT_LEADER' },
      leftDrained: [refs[0]],
    })
    expect(told).toMatchObject([{ code: 'NOT_LEADER' }])
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(before)
  })

  test('calls nothing if the process stood still until it was over', async () => {
    const { clock, lb } = setUp(3)
    let skipped = 0
    const frozen: Clock = {
      now: () => clock.now() + skipped,
      wall: () => Date.UTC(2026, 0, 1) + clock.now() + skipped,
      setTimeout: (fn, ms) => clock.setTimeout(fn, ms),
    }
    const kept = jsonStore()
    const tickets = {
      ...kept,
      set: async (key: string, value: unknown) => {
        await kept.set(key, value)
        // Woken, it handles this answer first, and only then what is due by time.
        if (JSON.stringify(value).includes('"acting"')) skipped = 60_000
      },
    }
    const lease = fakeLease({ clock })
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, { act, clock: frozen, lease, tickets, id: 'job' })
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'NOT_LEADER' } })
    expect(calls).toEqual([])
  })

  test('leaves a drain where it is when it is lost', async () => {
    const { clock, lb, refs } = setUp(3)
    const lease = fakeLease({ clock })
    lb.occupy(refs[0]!)
    const { act, calls } = actor(clock)
    const run = startRoll(lb, web, { act, clock, lease, timeout: '10m', onAbort: 'restore' })
    await clock.advance(10_000)
    lease.failNext('throw', Infinity)
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'NOT_LEADER' } })
    expect(report.leftDrained).toEqual([refs[0]])
    expect(calls).toEqual([])
  })

  test('continues in another process once the lease of the dead one ends', async () => {
    const { clock, lb, refs } = setUp(3)
    const lease = fakeLease({ clock })
    const tickets = jsonStore()
    let isDead = false
    const dead = {
      ...lease,
      name: lease.name,
      acquire: lease.acquire.bind(lease),
      renew: (...args: Parameters<typeof lease.renew>) =>
        isDead ? Promise.reject(new Error('dead')) : lease.renew(...args),
      release: async (...args: Parameters<typeof lease.release>) =>
        isDead ? undefined : lease.release(...args),
    }
    const hang = async ({ signal }: { signal: AbortSignal }): Promise<void> =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      )
    const first = startRoll(lb, web, { act: hang, clock, lease: dead, tickets, id: 'job' })
    await clock.advance(10_000)
    isDead = true
    const ticket = (await tickets.get('job')) as Ticket
    await clock.runUntil(first.close())
    const { act, calls } = actor(clock)
    const second = resumeRoll(lb, ticket, { act, clock, lease, tickets })
    await clock.advance(5_000)
    expect(calls).toEqual([])
    const report = await clock.runUntil(second.done)
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web1 2', 'web2 1', 'web3 1'])
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready'])
    expect(tickets.map.size).toBe(0)
  })

  describe('resumed from a ticket read long before', () => {
    /** A roll, and its ticket as it was at the beginning. */
    async function rolling(servers: number) {
      const { clock, lb, refs } = setUp(servers)
      const lease = fakeLease({ clock })
      const tickets = jsonStore()
      const first = actor(clock)
      const run = startRoll(lb, web, {
        act: first.act,
        clock,
        lease,
        tickets,
        id: 'job',
        leaseTtl: '1m',
      })
      await clock.runUntil(run.ticket)
      const ticket = (await tickets.get('job')) as Ticket
      return { clock, lb, refs, lease, tickets, first, run, ticket }
    }

    test('acts on no server that was done meanwhile', async () => {
      const { clock, lb, lease, tickets, first, run, ticket } = await rolling(3)
      while (first.calls.length < 2) await clock.advance(500)
      await clock.runUntil(run.close())
      const { act, calls } = actor(clock)
      const resumed = resumeRoll(lb, ticket, { act, clock, lease, tickets })
      expect((await clock.runUntil(resumed.done)).outcome).toBe('done')
      expect(calls.map((call) => call.split(' ')[0])).not.toContain('web1')
      expect(calls.at(-1)).toBe('web3 1')
    })

    test('is refused if the roll has ended', async () => {
      const { clock, lb, lease, tickets, run, ticket } = await rolling(2)
      await clock.runUntil(run.done)
      expect(tickets.map.size).toBe(0)
      const { act, calls } = actor(clock)
      const report = await clock.runUntil(
        resumeRoll(lb, ticket, { act, clock, lease, tickets }).done,
      )
      expect(report.outcome).not.toBe('done')
      expect(report.error?.code).toBe('CONFLICT')
      expect(report.error?.message).toContain("ticket 'job' is no longer in the store")
      expect(calls).toEqual([])
      expect(lease.held).toBeNull()
    })

    test('is refused if its id belongs to a drain now', async () => {
      const { clock, lb, lease, tickets, run, ticket } = await rolling(2)
      await clock.runUntil(run.done)
      await tickets.set('job', { ...ticket, roll: undefined })
      const { act } = actor(clock)
      const report = await clock.runUntil(
        resumeRoll(lb, ticket, { act, clock, lease, tickets }).done,
      )
      expect(report.error?.message).toContain("ticket 'job' belongs to a drain now")
    })
  })
})
