import { describe, expect, test } from 'vitest'
import {
  combineProviders,
  findOrphans,
  isDrainableError,
  restore,
  resumeDrain,
  resumeRoll,
  startDrain,
  startRoll,
  type Ticket,
} from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { thrown } from '../core/set-up.js'
import { fakeProvider } from 'drainable/testing'
import { actor, setUp, web } from './set-up.js'

/** A process that dies: whatever it wrote so far is all that another one has. */
async function copyAt(
  tickets: ReturnType<typeof jsonStore>,
  id: string,
): Promise<{ ticket: Ticket; store: ReturnType<typeof jsonStore> }> {
  const store = jsonStore()
  for (const [key, value] of tickets.map) store.map.set(key, value)
  return { ticket: (await store.get(id)) as Ticket, store }
}

/** A roll over three servers that stopped at its first one. */
async function failedJob() {
  const { clock, lb, refs } = setUp(3)
  const tickets = jsonStore()
  const { act } = actor(clock, async () => {
    throw new Error('exit 1')
  })
  await clock.runUntil(startRoll(lb, web, { act, clock, tickets, id: 'job' }).done)
  const ticket = (await tickets.get('job')) as Ticket
  return { act, clock, lb, refs, tickets, ticket }
}

describe('the ticket of a roll', () => {
  test('is kept while it rolls, and dropped at its end', async () => {
    const { clock, lb } = setUp(3)
    const tickets = jsonStore()
    const seen: string[] = []
    const { act } = actor(clock, async () => {
      const ticket = (await tickets.get('job')) as Ticket
      seen.push(ticket.roll!.servers.map(({ state }) => state).join(' '))
    })
    const run = startRoll(lb, web, { act, clock, tickets, id: 'job', owner: 'deploy' })
    await clock.runUntil(run.done)
    expect(seen).toEqual(['acting waiting waiting', 'done acting waiting', 'done done acting'])
    expect(tickets.map.size).toBe(0)
  })

  test('has its function called again by another process after a crash', async () => {
    const { clock, lb, refs } = setUp(3)
    const tickets = jsonStore()
    let copied: Awaited<ReturnType<typeof copyAt>> | undefined
    const first = actor(clock, async ({ ref }) => {
      if (ref.member !== 'web2') return
      copied = await copyAt(tickets, 'job')
      await run.close()
    })
    const run = startRoll(lb, web, {
      act: (server) => Promise.race([first.act(server), never(server.signal)]),
      clock,
      tickets,
      id: 'job',
    })
    const aborted = await clock.runUntil(run.done)
    expect(aborted).toMatchObject({
      outcome: 'aborted',
      leftDrained: [refs[1]],
      untouched: [refs[2]],
    })
    expect(lb.state(refs[1]!)).toBe('maint')
    const { ticket, store } = copied!
    const second = actor(clock)
    const resumed = resumeRoll(lb, ticket, { act: second.act, clock, tickets: store })
    const report = await clock.runUntil(resumed.done)
    expect(second.calls).toEqual(['web2 2', 'web3 1'])
    expect(report.servers.map(({ outcome, attempts }) => [outcome, attempts])).toEqual([
      ['done', 1],
      ['done', 2],
      ['done', 1],
    ])
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready'])
    expect(store.map.size).toBe(0)
  })

  test('opens servers that were acted on, without acting again', async () => {
    const { clock, lb, refs } = setUp(3)
    const tickets = jsonStore()
    const first = actor(clock, async ({ ref }) => lb.setHealth(ref, 'down'))
    const run = startRoll(lb, web, { act: first.act, clock, tickets, id: 'job', waitHealthy: '1h' })
    await clock.advance(10_000)
    const { ticket, store } = await copyAt(tickets, 'job')
    expect(ticket.roll?.servers[0]).toMatchObject({ state: 'acted', attempt: 1 })
    await clock.runUntil(run.close())
    lb.setHealth(refs[0]!, 'up')
    const second = actor(clock)
    const report = await clock.runUntil(
      resumeRoll(lb, ticket, { act: second.act, clock, tickets: store }).done,
    )
    expect(report.outcome).toBe('done')
    expect(second.calls).toEqual(['web2 1', 'web3 1'])
  })

  test('retries a failed server on a resume, held all the while', async () => {
    const { clock, lb, refs } = setUp(3)
    const tickets = jsonStore()
    const first = actor(clock, async () => {
      throw new Error('exit 1')
    })
    const report = await clock.runUntil(
      startRoll(lb, web, { act: first.act, clock, tickets, id: 'job' }).done,
    )
    expect(report.leftDrained).toEqual([refs[0]])
    const ticket = (await tickets.get('job')) as Ticket
    const second = actor(clock)
    const resumed = resumeRoll(lb, ticket, { act: second.act, clock, tickets, id: 'job' })
    expect((await clock.runUntil(resumed.done)).outcome).toBe('done')
    expect(second.calls).toEqual(['web1 2', 'web2 1', 'web3 1'])
  })

  test('restores what a roll has left, and nothing else', async () => {
    const { clock, lb, refs } = setUp(4)
    lb.setBehind(refs[3]!, 'maint')
    const tickets = jsonStore()
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web2') throw new Error('exit 1')
    })
    await clock.runUntil(startRoll(lb, web, { act, clock, tickets, id: 'job' }).done)
    const ticket = (await tickets.get('job')) as Ticket
    lb.disconnect()
    const unreached = await clock.runUntil(restore(lb, ticket, { clock, tickets }))
    expect(unreached).toMatchObject({ outcome: 'unreachable', members: [{ ref: refs[1] }] })
    expect(tickets.map.has('job')).toBe(true)
    lb.connect()
    const report = await clock.runUntil(restore(lb, ticket, { clock, tickets }))
    expect(report).toMatchObject({ outcome: 'restored', members: [{ ref: refs[1] }] })
    expect(refs.map((ref) => lb.state(ref))).toEqual(['ready', 'ready', 'ready', 'maint'])
    expect(tickets.map.size).toBe(0)
  })

  test('is found among the orphans with what it holds', async () => {
    const { clock, lb, refs, tickets, ticket } = await failedJob()
    await tickets.set('job', { ...ticket, owner: { ...ticket.owner, host: 'another-machine' } })
    const [orphan] = await clock.runUntil(findOrphans(tickets, lb, { clock }))
    expect(orphan?.members).toMatchObject([{ ref: refs[0], own: 'maint', owes: true }])
  })

  test('is not one of a drain, and a drain of its id does not overwrite it', async () => {
    const { act, clock, lb, refs, tickets, ticket } = await failedJob()
    for (const call of [
      () => resumeDrain(lb, ticket, { clock }),
      () => resumeRoll(combineProviders({ lb }), ticket, { act, clock }),
      () => resumeRoll(fakeProvider({ pools: {}, clock }), ticket, { act, clock }),
    ]) {
      expect(call).toThrow(expect.objectContaining({ code: 'TICKET_INVALID' }))
    }
    const { error } = await clock.runUntil(
      startDrain(lb, refs[1]!, { clock, tickets, id: 'job' }).done,
    )
    expect(error?.message).toContain("ticket 'job' belongs to a roll")
    const again = await clock.runUntil(startRoll(lb, web, { act, clock, tickets, id: 'job' }).done)
    expect(again.error?.message).toContain('resumeRoll() continues it')
    expect(await tickets.get('job')).toEqual(ticket)
  })

  test('does not run in two rolls at once', async () => {
    const { clock, lb } = setUp(3)
    const tickets = jsonStore()
    const { act, calls } = actor(clock)
    const first = startRoll(lb, web, { act, clock, tickets, id: 'job' })
    await clock.advance(100)
    const ticket = await clock.runUntil(first.ticket)
    const second = resumeRoll(lb, ticket, { act, clock, tickets })
    const { error } = await clock.runUntil(second.done)
    expect(isDrainableError(error, 'CONFLICT') && error.message).toContain('is under way')
    await clock.runUntil(first.done)
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
  })

  test('is not resumed beside a living process', async () => {
    const { act, clock, lb, ticket } = await failedJob()
    const owner = { ...ticket.owner, pid: process.ppid, started: null }
    expect(() => resumeRoll(lb, { ...ticket, owner }, { act, clock })).toThrow(
      expect.objectContaining({ code: 'CONFLICT' }),
    )
  })

  test('stops the roll before any change if the store fails', async () => {
    const { clock, lb } = setUp(3)
    const tickets = { ...jsonStore(), set: () => Promise.reject(new Error('disk full')) }
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(startRoll(lb, web, { act, clock, tickets }).done)
    expect(report).toMatchObject({
      outcome: 'stopped',
      error: { message: expect.stringMatching(/disk full/) as unknown },
    })
    expect(calls).toEqual([])
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('keeps a server held without acting if the store fails later', async () => {
    const { clock, lb, refs } = setUp(3)
    const store = jsonStore()
    let left = 6
    const tickets = {
      ...store,
      set: async (key: string, value: unknown) => {
        left -= 1
        if (left < 0) throw new Error('disk full')
        return store.set(key, value)
      },
    }
    const { act, calls } = actor(clock)
    const report = await clock.runUntil(startRoll(lb, web, { act, clock, tickets }).done)
    expect(report.outcome).toBe('stopped')
    expect(calls.length).toBeLessThanOrEqual(1)
    const named = [...report.leftDrained, ...report.untouched].map(({ member }) => member)
    for (const ref of refs) {
      if (lb.state(ref) !== 'ready') expect(named).toContain(ref.member)
    }
  })
})

async function never(signal: AbortSignal): Promise<void> {
  await new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

describe('an aborted roll', () => {
  test('waits for running functions, and leaves what they acted on', async () => {
    const { clock, lb, refs } = setUp(3)
    const stop = new AbortController()
    const told: unknown[] = []
    const act = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
      signal.addEventListener('abort', () => told.push(signal.reason))
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 20_000))
    }
    const run = startRoll(lb, web, { act, clock, signal: stop.signal, onAbort: 'restore' })
    await clock.advance(5_000)
    const reason = new Error('enough')
    stop.abort(reason)
    await clock.advance(1_000)
    expect(told).toEqual([reason])
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'aborted', leftDrained: [refs[0]] })
    expect(lb.state(refs[0]!)).toBe('maint')
  })

  test('puts back what was not acted on, if that is wished', async () => {
    for (const onAbort of ['leave', 'restore'] as const) {
      const { clock, lb, refs } = setUp(3)
      lb.occupy(refs[0]!)
      const stop = new AbortController()
      const { act, calls } = actor(clock)
      const run = startRoll(lb, web, { act, clock, signal: stop.signal, onAbort })
      await clock.advance(5_000)
      expect(lb.state(refs[0]!)).toBe('drain')
      stop.abort(new Error('enough'))
      const report = await clock.runUntil(run.done)
      expect(calls).toEqual([])
      expect(lb.state(refs[0]!)).toBe(onAbort === 'leave' ? 'drain' : 'ready')
      expect(report.leftDrained).toEqual(onAbort === 'leave' ? [refs[0]] : [])
    }
  })

  test('changes nothing before it began', async () => {
    const { clock, lb } = setUp(3)
    const { act } = actor(clock)
    const signal = AbortSignal.abort(new Error('never mind'))
    const run = startRoll(lb, web, { act, clock, signal })
    expect(await clock.runUntil(run.done)).toMatchObject({ outcome: 'aborted', servers: [] })
    expect(lb.requests).toEqual([])
    expect(await thrown(run.ticket)).toMatchObject({ code: 'CONFLICT' })
  })
})
