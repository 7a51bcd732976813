import { afterEach, describe, expect, test, vi } from 'vitest'
import type * as library from 'drainable'
import { drain, ready, startDrain, stepDrain } from 'drainable'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import { only, thrown, web1, web2 } from '../set-up.js'
import { anotherObject, isHold, loseAnswer, ofKind, recordChanges, rig } from '../rig.js'

afterEach(() => vi.restoreAllMocks())

const TWO = { pools: { web: ['web1', 'web2'] } }
/** For a drain that waits for its place. */
const WAIT = { timeout: '10m', onMinimum: 'wait' } as const

/** Watches how few members of the pool were ever open after a change. */
function fewest(lb: FakeProvider, refs = [web1, web2]): () => number {
  const open = (): number => refs.filter((ref) => lb.state(ref) === 'ready').length
  let least = open()
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    const results = await apply(changes, ctx)
    least = Math.min(least, open())
    return results
  }
  return () => least
}

// Fault 7
describe('a member that a drain of this process wishes down', () => {
  const looks = Array.from({ length: 16 }, (_, i) => i + 1)

  test.each(looks)('does not count as serving in look %i of a drain that waits', async (nth) => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    await using waiting = startDrain(lb, web2, { clock, ...WAIT })
    await clock.advance(3_000)
    expect(waiting.why()[0]?.code).toBe('pool-at-minimum')
    const least = fewest(lb)
    let reloaded = false
    const reload = (): void => {
      if (!reloaded) lb.reload()
      reloaded = true
    }
    // Just before a look of the drain that waits alone: it is the first to see the reload.
    const observe = lb.observe.bind(lb)
    let alone = 0
    lb.observe = (refs, ctx) => {
      if (refs !== 'all' && refs.every(({ member }) => member === 'web2') && ++alone === nth)
        reload()
      return observe(refs, ctx)
    }
    clock.setTimeout(reload, 1_000)
    await clock.advance(5_000)
    expect(least()).toBe(1)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['maint', 'ready'])
  })

  test('does not count as serving for a drain begun after a reload', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    lb.reload()
    const error = await clock.runUntil(thrown(drain(lb, web2, { clock })))
    expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    await clock.advance(5_000)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['maint', 'ready'])
  })

  test('does not count as serving for a step after a reload', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    lb.reload()
    const step = clock.runUntil(thrown(stepDrain(lb, { target: web2 }, { clock })))
    expect(await step).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    await clock.advance(1_000)
  })

  test('does not count as serving while its own hold waits for the ticket', async () => {
    const { clock, lb } = rig(TWO)
    let keep = (): void => undefined
    await using first = startDrain(lb, web1, {
      clock,
      timeout: '10m',
      onTicket: () => new Promise<void>((resolve) => (keep = resolve)),
    })
    await clock.advance(1_000)
    await using second = startDrain(lb, web2, { clock, ...WAIT })
    await clock.advance(5_000)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'ready'])
    expect(second.why()[0]?.code).toBe('pool-at-minimum')
    await clock.runUntil(first.release())
    keep()
    await clock.advance(1_000)
    expect(lb.state(web2)).not.toBe('ready')
  })

  test('counts again once its drain was released', async () => {
    const { clock, lb } = rig(TWO)
    const held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    await held.release()
    lb.reload()
    await using second = startDrain(lb, web2, { clock })
    expect((await clock.runUntil(second.done)).outcome).toBe('idle')
  })

  test('counts again once it was restored', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    await using waiting = startDrain(lb, web2, { clock, ...WAIT })
    await clock.advance(1_000)
    await clock.runUntil(held.restore())
    expect((await clock.runUntil(waiting.done)).outcome).toBe('idle')
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'maint'])
  })

  test('counts again once ready() has opened it', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    await using waiting = startDrain(lb, web2, { clock, ...WAIT })
    await clock.advance(1_000)
    await clock.runUntil(ready(lb, web1, { clock }))
    expect((await clock.runUntil(waiting.done)).outcome).toBe('idle')
  })

  test('counts again once its own drain was refused', async () => {
    const { clock, lb } = rig(TWO)
    const held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    expect(await clock.runUntil(thrown(drain(lb, web2, { clock })))).toMatchObject({
      code: 'POOL_AT_MINIMUM',
    })
    await clock.runUntil(held.restore())
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })
})

// Fault 7: a member wished down already takes no further place
describe('a change of a member already wished down', () => {
  test('a put-back is allowed while no other member serves', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    lb.setHealth(web2, 'down')
    lb.reload()
    await clock.advance(5_000)
    expect(lb.state(web1)).toBe('maint')
  })

  test('a lost hold is sent again while no other member serves', async () => {
    const { clock, lb } = rig(TWO)
    loseAnswer(lb, clock, isHold)
    const sent = recordChanges(lb, clock)
    await using run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(0)
    expect(ofKind(sent, 'hold')).toHaveLength(1)
    lb.setHealth(web2, 'down')
    await clock.advance(500)
    expect(ofKind(sent, 'hold').length).toBeGreaterThan(1)
    await run.release()
  })

  test('a seal is allowed while no other member serves', async () => {
    const { clock, lb } = rig(TWO)
    await using run = startDrain(lb, web1, { clock })
    await clock.advance(500)
    expect(lb.state(web1)).toBe('drain')
    lb.setHealth(web2, 'down')
    expect(only(await clock.runUntil(run.done))).toMatchObject({ outcome: 'idle', sealed: true })
  })

  test('an escalation is allowed while no other member serves', async () => {
    const { clock, lb } = rig(TWO)
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '1m', escalateAfter: '5s' })
    await clock.advance(1_000)
    lb.setHealth(web2, 'down')
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('maint')
    await run.release()
  })

  test('a second drain of it takes no second place', async () => {
    const { clock, lb } = rig(TWO)
    await using first = startDrain(lb, web1, { clock })
    await using second = startDrain(lb, web1, { clock })
    const reports = await clock.runUntil(Promise.all([first.done, second.done]))
    expect(reports.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
  })
})

// Fault 7: one floor for each name and instance
describe('two provider objects for one balancer', () => {
  test('do not both take the last place', async () => {
    const { clock, lb } = rig(TWO)
    const least = fewest(lb)
    await using first = startDrain(lb, web1, { clock, ...WAIT })
    await using second = startDrain(anotherObject(lb), web2, { clock, ...WAIT })
    await clock.advance(10_000)
    expect(least()).toBe(1)
    expect([first, second].map((run) => run.report().members[0]?.phase).sort()).toEqual([
      'active',
      'idle',
    ])
  })

  test('do not both take the last place after a reload', async () => {
    const { clock, lb } = rig(TWO)
    await using held = startDrain(lb, web1, { clock })
    await clock.runUntil(held.done)
    lb.reload()
    const error = await clock.runUntil(thrown(drain(anotherObject(lb), web2, { clock })))
    expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    await clock.advance(1_000)
  })

  test('let a ready() through one end a drain through the other', async () => {
    const { clock, lb } = rig(TWO)
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m', onOverrule: 'reapply' })
    await clock.advance(1_000)
    await clock.runUntil(ready(anotherObject(lb), web1, { clock }))
    await clock.advance(20_000)
    expect(lb.state(web1)).toBe('ready')
    expect(run.report().outcome).toBe('overruled')
  })

  test('look each with their own credentials', async () => {
    const { clock, lb } = rig({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    const [one, two] = [anotherObject(lb), anotherObject(lb)]
    await using first = startDrain(one, web1, { clock })
    await using second = startDrain(two, web2, { clock })
    await clock.runUntil(Promise.all([first.done, second.done]))
    // Until its own place is sure, each drain reads for itself which members of the pool are wished down.
    const before = [one.looks.length, two.looks.length]
    lb.reload()
    await clock.advance(5_000)
    const names = ({ looks }: typeof one, from = 0): unknown => [
      ...new Set(
        looks.slice(from).flatMap((refs) => (refs === 'all' ? ['all'] : refs.map((r) => r.member))),
      ),
    ]
    expect([names(one, before[0]), names(two, before[1])]).toEqual([['web1'], ['web2']])
    expect([one.descriptions(), two.descriptions()]).toEqual([1, 1])
    expect([lb.state(web1), lb.state(web2)]).toEqual(['maint', 'maint'])
  })
})

// Fault 7: ESM and CJS copies can meet in one process
describe('two copies of the library', () => {
  async function copy(): Promise<typeof library> {
    vi.resetModules()
    return await import('drainable')
  }

  test('do not both take the last place', async () => {
    const other = await copy()
    expect(other.startDrain).not.toBe(startDrain)
    const { clock, lb } = rig(TWO)
    const least = fewest(lb)
    await using first = startDrain(lb, web1, { clock, ...WAIT })
    await using second = other.startDrain(lb, web2, { clock, ...WAIT })
    await clock.advance(10_000)
    expect(least()).toBe(1)
    expect([first, second].map((run) => run.report().members[0]?.phase).sort()).toEqual([
      'active',
      'idle',
    ])
  })

  test('let a ready() of one end a drain of the other', async () => {
    const other = await copy()
    const { clock, lb } = rig(TWO)
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m', onOverrule: 'reapply' })
    await clock.advance(1_000)
    await clock.runUntil(other.ready(lb, web1, { clock }))
    await clock.advance(20_000)
    expect(lb.state(web1)).toBe('ready')
    expect(run.report().outcome).toBe('overruled')
  })
})

// Fault 7
describe('a fake provider', () => {
  test('has an instance of its own where none is given', () => {
    const names = [TWO, TWO, TWO].map((options) => fakeProvider(options).instance)
    expect(new Set(names).size).toBe(3)
  })

  test('has the instance it is given', () => {
    expect(fakeProvider({ ...TWO, instance: 'lab' }).instance).toBe('lab')
  })

  test('shares no floor with another one if no instance is given', async () => {
    const { clock } = rig(TWO)
    const [one, two] = [fakeProvider({ ...TWO, clock }), fakeProvider({ ...TWO, clock })]
    await using first = startDrain(one, web1, { clock })
    await using second = startDrain(two, web2, { clock })
    const reports = await clock.runUntil(Promise.all([first.done, second.done]))
    expect(reports.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
  })
})
