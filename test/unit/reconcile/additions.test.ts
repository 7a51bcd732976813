import { describe, expect, it } from 'vitest'
import type { DesiredMember, DrainableError, Reconciler } from 'drainable'
import { fakeLease, type FakeClock, type FakeProvider } from 'drainable/testing'
import { bench, desired, memoryStore, web, type Bench } from './set-up.js'

const place = { address: '10.0.0.9', port: 80 }
const fresh: DesiredMember = { pool: 'web', member: 'n', ...place, state: 'serve' }
const others = desired({ a: 'serve', b: 'serve' })
const owns = (): boolean => false

/** Another hand adds the same member. */
async function addBehind(lb: FakeProvider, clock: FakeClock): Promise<void> {
  const context = { signal: new AbortController().signal, clock }
  await lb.apply([{ kind: 'add', ref: web('n'), ...place }], context)
}

function listOf(store: ReturnType<typeof memoryStore>): unknown {
  return [...store.kept].find(([key]) => key.startsWith('drainable=added='))?.[1]
}

/** A controller whose addition is carried out, and which does not hear of it. */
async function addAndDie(at: Bench): Promise<{ first: Reconciler }> {
  at.lb.failNext('hang-after', { verb: 'apply' })
  const first = at.start({ owns })
  first.set([...others, fresh])
  await at.clock.advance(10)
  return { first }
}

describe('what a reconciler added without owns', () => {
  it('is removed by its next term', async () => {
    const at = bench('a', 'b')
    const lease = fakeLease({ clock: at.clock })
    await using loop = await at.settled([...others, fresh], { owns, lease, tickets: undefined })
    lease.failNext('throw', Infinity)
    await at.clock.advance(30_000)
    expect(loop.leading).toBe(false)
    lease.failNext('throw', 0)
    loop.set(others)
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b', 'n')).toEqual(['ready', 'ready', 'gone'])
  })

  it('is removed by the next process', async () => {
    const at = bench('a', 'b')
    {
      await using first = at.start({ owns })
      first.set([...others, fresh])
      await at.clock.runUntil(first.settled())
    }
    expect(listOf(at.tickets)).toMatchObject({
      added: [['10.0.0.9', 80, expect.any(String), null, expect.any(String)]],
    })
    await using second = at.start({ owns })
    second.set(others)
    await at.clock.runUntil(second.settled())
    expect(at.states('a', 'b', 'n')).toEqual(['ready', 'ready', 'gone'])
    await at.clock.advance(120_000)
    expect(listOf(at.tickets)).toBeUndefined()
  })

  it('is removed if the process died before it heard of the addition', async () => {
    const at = bench('a', 'b')
    at.lb.failNext('hang-after', { verb: 'apply' })
    const first = at.start({ owns })
    first.set([...others, fresh])
    await at.clock.advance(10)
    await at.clock.runUntil(first.close())
    expect(at.states('n')).toEqual(['ready'])
    await using second = at.start({ owns })
    second.set(others)
    await at.clock.runUntil(second.settled())
    expect(at.states('n')).toEqual(['gone'])
  })

  it('is opened by the next process if the first died before it opened it', async () => {
    const at = bench('a', 'b')
    const { first } = await addAndDie(at)
    await at.clock.runUntil(first.close())
    at.lb.setBehind(web('n'), 'maint') // a product adds a member held, and opens it by a second call
    await using second = await at.settled([...others, fresh], { owns })
    expect(at.states('n')).toEqual(['ready'])
    expect(second.status()).toEqual([])
  })

  it('is left as an operator holds it, once it was seen open', async () => {
    const at = bench('a', 'b')
    const { first } = await addAndDie(at)
    await at.clock.advance(60_000)
    await at.clock.runUntil(first.close())
    at.lb.setBehind(web('n'), 'maint')
    await using second = await at.settled([...others, fresh], { owns })
    expect(at.states('n')).toEqual(['maint'])
    expect(second.status()).toMatchObject([
      { ref: web('n'), held: expect.stringContaining('did not drain it') as string },
    ])
  })

  it('is left as an operator holds it, if it was seen open while its call hung', async () => {
    const at = bench('a', 'b')
    const { first } = await addAndDie(at)
    await at.clock.advance(3_000)
    at.lb.setBehind(web('n'), 'maint')
    await at.clock.runUntil(first.close())
    await using second = await at.settled([...others, fresh], { owns })
    expect([at.states('n'), second.status().length]).toEqual([['maint'], 1])
  })

  it('does not include what another client added first', async () => {
    const at = bench('a', 'b')
    const store = memoryStore()
    const tickets = {
      ...store,
      set: async (key: string, value: unknown): Promise<void> => {
        await store.set(key, value)
        if (key.startsWith('drainable=added=')) await addBehind(at.lb, at.clock)
      },
    }
    await using loop = await at.settled([...others, fresh], { owns, tickets })
    expect(at.sent()).toContain('add n')
    loop.set(others)
    await at.clock.runUntil(loop.settled())
    await at.clock.advance(60_000)
    expect(at.states('n')).toEqual(['ready'])
    expect(loop.status()).toMatchObject([
      { ref: web('n'), held: expect.stringMatching(/foreign/) as unknown },
    ])
  })

  it('does not include what another client adds after a removal', async () => {
    const at = bench('a', 'b')
    await using loop = await at.settled([...others, fresh], { owns })
    loop.set(others)
    await at.clock.runUntil(loop.settled())
    expect(at.states('n')).toEqual(['gone'])
    await at.clock.advance(120_000)
    await addBehind(at.lb, at.clock)
    await at.clock.advance(120_000)
    expect(at.states('n')).toEqual(['ready'])
  })

  it('is not added before the store can keep it', async () => {
    const at = bench('a', 'b')
    const store = memoryStore()
    let isDown = true
    const tickets = {
      ...store,
      set: async (key: string, value: unknown): Promise<void> => {
        if (!isDown) await store.set(key, value) // a Keyv on a failing store says nothing
      },
    }
    const faults: DrainableError[] = []
    await using loop = at.start({ owns, tickets })
    loop.on('fault', (error) => faults.push(error))
    loop.set([...others, fresh])
    await at.clock.advance(5_000)
    expect(at.sent()).toEqual([])
    expect(faults[0]?.message).toMatch(/did not keep what was added to web/)
    expect(loop.status()).toMatchObject([
      { ref: web('n'), held: expect.stringMatching(/did not keep/) as unknown },
    ])
    isDown = false
    await at.clock.runUntil(loop.settled(), 120_000)
    await at.clock.advance(60_000)
    expect(at.states('n')).toEqual(['ready'])
    expect(listOf(store)).toBeDefined()
  })

  it('is not what a write that was given up brings back', async () => {
    const at = bench('a', 'b')
    const store = memoryStore()
    let isFirst = true
    const tickets = {
      ...store,
      set: async (key: string, value: unknown): Promise<void> => {
        const isHung = isFirst && key.startsWith('drainable=added=')
        if (isHung) {
          isFirst = false
          await new Promise<void>((resolve) => void at.clock.setTimeout(resolve, 40_000))
        }
        await store.set(key, value)
      },
    }
    await using loop = at.start({ owns, tickets })
    loop.set([...others, fresh])
    await at.clock.advance(31_000) // the write has been given up
    loop.set([...others, { ...fresh, member: 'm', address: '10.0.0.10' }])
    await at.clock.advance(29_000)
    expect(at.states('n', 'm')).toEqual(['gone', 'ready'])
    expect(listOf(store)).toMatchObject({
      added: [['10.0.0.10', 80, expect.any(String), null, expect.any(String)]],
    })
  })

  it('is not what the holder of a later lease has listed', async () => {
    const at = bench('a', 'b')
    const lease = fakeLease({ clock: at.clock })
    {
      await using first = at.start({ owns, lease })
      first.set([...others, fresh])
      await at.clock.runUntil(first.settled())
    }
    const key = [...at.tickets.kept.keys()].find((one) => one.startsWith('drainable=added='))!
    const later = { v: 1, lease: { name: lease.name, fence: 1_000 }, added: [] }
    await at.tickets.set(key, later)
    const faults: string[] = []
    await using second = at.start({ owns, lease })
    second.on('fault', ({ message }) => faults.push(message))
    second.set([...others, fresh, { ...fresh, member: 'm', address: '10.0.0.10' }])
    await at.clock.advance(5_000)
    expect(at.states('m')).toEqual(['gone'])
    expect(await at.tickets.get(key)).toEqual(later)
  })

  it('survives two controllers that add to one pool at once', async () => {
    const at = bench('a', 'b')
    const more = { ...fresh, member: 'm', address: '10.0.0.10' }
    {
      await using first = at.start({ owns })
      await using second = at.start({ owns })
      first.set([...others, fresh, more])
      second.set([...others, fresh, more])
      await at.clock.runUntil(Promise.all([first.settled(), second.settled()]))
    }
    await using third = at.start({ owns })
    third.set(others)
    await at.clock.runUntil(third.settled())
    expect(at.states('a', 'b', 'n', 'm')).toEqual(['ready', 'ready', 'gone', 'gone'])
  })
})
