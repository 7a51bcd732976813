/** Where `settled()` resolves, nothing of the newest set is under way or due: it is so, or waits and says why. */
import { describe, expect, it } from 'vitest'
import { bench, desired, slowBench, web, type Bench, type State } from './set-up.js'
import { randomOf } from './world.js'

describe('settled()', () => {
  // How the looks fall depends on how long a call takes.
  it.each([0, 1, 2, 5, 20])(
    'waits for a removal beside a member that is taken back, at %d ms a call',
    async (latency) => {
      const at = slowBench(latency, 'a', 'b', 'c')
      await using loop = await at.settled(desired({ a: 'serve', b: 'drain', c: 'serve' }))
      loop.set(desired({ a: 'serve', b: 'serve' }))
      await at.clock.runUntil(loop.settled())
      expect(at.states('a', 'b', 'c')).toEqual(['ready', 'ready', 'gone'])
      expect(loop.status()).toEqual([])
    },
  )

  it('waits for the removal of a member that works on', async () => {
    const at = slowBench(1, 'a', 'b')
    const end = at.lb.occupy(web('b'))
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'absent' }))
    at.clock.setTimeout(end, 10_000)
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
  })

  it('waits for the removal of a member whose work is cut at the deadline', async () => {
    const at = slowBench(1, 'a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '5s', onTimeout: 'terminate' })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['gone'])
  })

  it('resolves with the reason where a member works on at its deadline', async () => {
    const at = slowBench(1, 'a', 'b')
    at.lb.occupy(web('b'))
    await using loop = at.start({ timeout: '5s' })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.clock.now()).toBeGreaterThan(5_000)
    const held = expect.stringContaining('deadline') as string
    expect(loop.status()).toMatchObject([{ ref: web('b'), held }])
  })

  it('waits for an addition at another address than the one that was refused', async () => {
    const at = bench('a')
    await using loop = at.start()
    const fresh = { pool: 'web', member: 'n', port: 80, state: 'serve' } as const
    const set = (address: string): void =>
      loop.set([...desired({ a: 'serve' }), { ...fresh, address }])
    at.lb.failNext('reject', { verb: 'apply' })
    set('10.0.0.8')
    await at.clock.runUntil(loop.settled())
    expect(loop.status()).toMatchObject([{ ref: web('n'), held: refused }])
    set('10.0.0.9')
    await at.clock.runUntil(loop.settled())
    expect(at.states('n')).toEqual(['ready'])
    expect(loop.status()).toEqual([])
  })

  it('resolves with the reason where a removal without a drain is refused', async () => {
    const at = slowBench(1, 'a', 'b')
    await using loop = await at.settled(desired({ a: 'serve', b: 'dead' }), { drain: false })
    at.lb.failNext('reject', { verb: 'apply' })
    loop.set(desired({ a: 'serve', b: 'absent' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('b')).toEqual(['maint'])
    expect(loop.status()).toMatchObject([{ ref: web('b'), held: refused }])
  })

  it.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'is true to its word, whatever happens (story %d)',
    async (seed) => {
      const random = randomOf(seed + 1)
      const at = slowBench(1 + random(12), ...NAMES)
      await using loop = at.start({
        timeout: '20s',
        keepReady: random(3),
        drain: random(4) > 0,
        onTimeout: random(2) > 0 ? 'terminate' : 'fail',
      })
      for (let round = 0; round < 6; round += 1) {
        const wanted = await meddle(at, random, (set) => loop.set(desired(set)))
        await at.clock.runUntil(loop.settled(), 900_000)
        const held = new Map(loop.status().map((one) => [one.ref.member, one.held]))
        const early = NAMES.filter(
          (name) => !isAsWanted(wanted[name], at.lb.state(web(name))) && held.get(name) == null,
        )
        expect(early, `round ${round}`).toEqual([])
      }
    },
  )
})

const refused = expect.stringContaining('told to refuse') as string
const NAMES = ['a', 'b', 'c', 'd', 'e']
const STATES = ['serve', 'serve', 'drain', 'dead', 'absent'] as const

/** Some sets, one soon after the other, beside work that comes and ends. Returns the last one. */
async function meddle(
  { lb, clock }: Bench,
  random: (n: number) => number,
  set: (wanted: Record<string, State>) => void,
): Promise<Record<string, State>> {
  let wanted: Record<string, State> = {}
  const ends: (() => void)[] = []
  for (let i = random(3); i >= 0; i -= 1) {
    const left = NAMES.filter((name) => name === 'a' || random(5) > 0)
    wanted = Object.fromEntries(left.map((name) => [name, STATES[random(5)] ?? 'serve']))
    set(wanted)
    const busy = web(NAMES[random(5)] ?? 'a')
    if (random(3) === 0 && lb.state(busy) === 'ready') ends.push(lb.occupy(busy))
    if (random(8) === 0) lb.failNext('reject', { verb: 'apply' })
    await clock.advance(random(random(3) > 0 ? 300 : 3_000))
  }
  if (random(3) > 0) for (const end of ends) end()
  return wanted
}

/** One that is out stays out: it is given no address. */
function isAsWanted(wanted: State | undefined, state: string): boolean {
  if (state === 'gone') return true
  if (wanted === 'serve') return state === 'ready'
  return (wanted === 'drain' || wanted === 'dead') && state !== 'ready'
}
