import { reconcile, type DrainableError } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { bench, desired, slowBench, slowStore, web } from './set-up.js'

const LATE = 30_000

/** A member whose removal was sent and not answered, and whose endpoint has come back since. */
async function lostRemoval() {
  const clock = fakeClock()
  const capabilities = { lateBound: LATE }
  const lb = fakeProvider({ pools: { web: ['a', 'b'] }, clock, capabilities })
  const loop = reconcile(lb, { pools: ['web'], owns: () => true, drain: false, clock })
  loop.set(desired({ a: 'serve', b: 'dead' }))
  await clock.runUntil(loop.settled())
  lb.failNext('throw', { verb: 'apply' })
  const told = new Promise((resolve) => loop.on('fault', resolve))
  loop.set(desired({ a: 'serve', b: 'absent' }))
  await clock.runUntil(told)
  loop.set(desired({ a: 'serve', b: 'serve' }))
  return { clock, lb, loop, lostAt: clock.now() }
}

describe('an unanswered removal without a drain', () => {
  it('is waited for before a returning member is opened', async () => {
    const { clock, lb, loop, lostAt } = await lostRemoval()
    await clock.advance(20_000)
    expect(lb.state(web('b'))).toBe('maint')
    expect(loop.status()).toMatchObject([
      {
        ref: web('b'),
        want: 'serve',
        why: [
          {
            code: 'not-in-force',
            text: expect.stringMatching(
              /answer to 'remove' was lost; the balancer may still carry it out until/,
            ) as unknown,
          },
          { code: 'settling' },
        ],
      },
    ])
    while (lb.state(web('b')) !== 'ready' && clock.now() < 120_000) await clock.advance(100)
    expect(lb.state(web('b'))).toBe('ready')
    expect(clock.now() - lostAt).toBeGreaterThanOrEqual(LATE)
    expect(clock.now() - lostAt).toBeLessThan(LATE + 3_000)
    await clock.advance(5_000)
    expect(loop.status()).toEqual([])
    await clock.runUntil(loop.close())
  })

  it('carried out late finds a member without work', async () => {
    const { clock, lb, loop } = await lostRemoval()
    await clock.advance(LATE - 1_000)
    expect(lb.state(web('b'))).toBe('maint')
    lb.setBehind(web('b'), 'gone') // by the product, in its own time
    await clock.advance(5_000)
    expect(loop.status()).toMatchObject([
      { ref: web('b'), held: expect.stringMatching(/it is not in the balancer/) as unknown },
    ])
    await clock.runUntil(loop.close())
  })
})

describe('a removal', () => {
  it('leaves no ticket where the loop is closed as soon as the member is out', async () => {
    const at = bench('a', 'b')
    const tickets = slowStore(at.clock, 40)
    const left = () => [...tickets.kept.keys()].filter((key) => key.startsWith('reconcile:'))
    const loop = at.start({ tickets })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    while (at.states('b')[0] !== 'gone') await at.clock.advance(1)
    expect(left()).toHaveLength(1)
    await at.clock.runUntil(loop.close())
    expect(left()).toEqual([])
  })

  it('that was refused is asked for again, and the member stays held', async () => {
    const at = slowBench(1, 'a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'drain' }))
    const faults: Error[] = []
    loop.on('fault', (error) => faults.push(error))
    at.lb.failNext('reject', { verb: 'apply' })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['maint'])
    expect(faults).toHaveLength(1)
    await at.clock.advance(10_000)
    expect(at.states('b')).toEqual(['gone'])
    expect(loop.status()).toEqual([])
  })

  it('that is not wished any more is not asked for, and its drain goes on', async () => {
    const at = bench('a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.advance(3_000)
    const sent = at.sent().length
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.advance(1_000)
    end()
    await at.clock.runUntil(loop.settled())
    expect(at.sent().slice(sent)).toEqual([])
    expect(loop.status()).toMatchObject([
      { ref: web('b'), want: 'drain', phase: 'idle', held: null },
    ])
  })
})

describe('the time of a member that is held back', () => {
  it('starts when it is held back first, however often it is asked', async () => {
    const clock = fakeClock()
    const lb = fakeProvider({ pools: { web: ['a', 'b', 'vm'] }, clock })
    lb.setBehind(web('b'), 'maint')
    const owns = ({ ref }: { ref: { member: string } }): boolean => ref.member !== 'vm'
    await using loop = reconcile(lb, { pools: ['web'], owns, clock })
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await clock.runUntil(loop.settled())
    const times = (): Record<string, string> =>
      Object.fromEntries(loop.status().map(({ ref, since }) => [ref.member, since]))
    const first = times()
    expect(Object.keys(first).sort()).toEqual(['b', 'vm'])
    await clock.advance(600_000)
    expect(times()).toEqual(first)
    lb.setBehind(web('vm'), 'drain')
    await clock.advance(120_000)
    expect(times()).toMatchObject({ b: first['b'] })
    expect(times()['vm']).not.toBe(first['vm'])
  })
})

it('work between an idle and its removal is cut where that is asked for', async () => {
  const at = bench('a', 'b')
  const ending = { timeout: '20s', onTimeout: 'terminate' } as const
  await using loop = at.start({ ...ending, gone: 'drain', seal: false })
  loop.set(desired({ a: 'serve', b: 'drain' }))
  await at.clock.advance(10_000)
  loop.set(desired({ a: 'serve', b: 'absent' }))
  await at.clock.advance(50)
  at.lb.occupy(web('b'))
  await at.clock.advance(120_000)
  expect(at.states('b')).toEqual(['gone'])
})

describe('a removal at the deadline, where the product removes no member at work and cuts nothing', () => {
  async function late() {
    const clock = fakeClock()
    const capabilities = { removal: 'refuses', terminate: false } as const
    const lb = fakeProvider({ pools: { web: ['a', 'b', 'c'] }, clock, capabilities })
    const end = lb.occupy(web('c'))
    const policy = { timeout: '30s', onTimeout: 'remove' } as const
    const loop = reconcile(lb, { pools: ['web'], owns: () => true, clock, ...policy })
    const faults: DrainableError[] = []
    loop.on('fault', (error) => faults.push(error))
    loop.set(desired({ a: 'serve', b: 'absent', c: 'absent' }))
    return { clock, lb, loop, end, faults }
  }

  it('takes an idle member out', async () => {
    const { clock, lb, loop, faults } = await late()
    await clock.advance(20_000)
    expect(lb.state(web('b'))).toBe('gone')
    expect(loop.status()).toMatchObject([{ ref: web('c'), active: 1, held: null }])
    expect(faults).toEqual([])
    await clock.runUntil(loop.close())
  })

  it('is told once for a member at work, which goes once it is idle', async () => {
    const { clock, lb, loop, end, faults } = await late()
    await clock.advance(300_000)
    expect(loop.status()).toMatchObject([{ ref: web('c'), pastDeadline: true }])
    expect(faults.map(({ code }) => code)).toEqual(['UNSUPPORTED'])
    expect(faults[0]?.message).toMatch(/removes no member that has work.*maintCuts/)
    end()
    await clock.advance(5_000)
    expect(lb.state(web('c'))).toBe('gone')
    await clock.runUntil(loop.close())
  })
})
