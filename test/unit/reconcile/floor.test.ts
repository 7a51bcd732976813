import { startDrain } from 'drainable'
import { describe, expect, it } from 'vitest'
import { bench, desired, slowBench, web, type State } from './set-up.js'

const EIGHTEEN = Array.from({ length: 18 }, (_, i) => `m${i + 1}`)

/** The first ones are drained, the others serve. */
function firstDrained(count: number): ReturnType<typeof desired> {
  const wanted = EIGHTEEN.map((name, i): [string, State] => [name, i < count ? 'drain' : 'serve'])
  return desired(Object.fromEntries(wanted))
}

describe('the floor of a reconciler after a restart', () => {
  it('takes no place for members that a ticket holds in maint', async () => {
    const at = slowBench(40, ...EIGHTEEN)
    // A machine's clock never shows one moment twice.
    const now = at.clock.now.bind(at.clock)
    let read = 0
    at.clock.now = () => now() + (read += 1) / 1e6
    const first = await at.settled(firstDrained(12))
    await at.clock.runUntil(first.close())
    // The tickets are read while the new drain looks for the first time.
    const left = new Set(at.tickets.kept.keys())
    const get = at.tickets.get.bind(at.tickets)
    at.tickets.get = async (key) => {
      if (left.has(key)) await new Promise<void>((resolve) => at.clock.setTimeout(resolve, 20))
      return get(key)
    }
    const second = at.start()
    const faults: string[] = []
    second.on('fault', ({ message }) => faults.push(message))
    second.set(firstDrained(13))
    await at.clock.advance(900)
    expect(faults).toEqual([])
    expect(at.states('m13')).toEqual(['drain'])
    await at.clock.runUntil(second.close())
  })
})

describe('a hold that the floor has refused', () => {
  /** Another drain of this process wishes a down, and waits for its ticket. */
  async function refused() {
    const at = bench('a', 'b')
    const other = new AbortController()
    const waiting = startDrain(at.lb, web('a'), {
      clock: at.clock,
      signal: other.signal,
      timeout: '10m',
      onTicket: () => new Promise<void>(() => undefined),
    })
    const loop = at.start()
    const faults: string[] = []
    loop.on('fault', ({ code }) => faults.push(code))
    loop.set(desired({ a: 'serve', b: 'drain' }))
    await at.clock.runUntil(loop.settled())
    return { ...at, other, waiting, loop, faults }
  }

  it('is told once, and said in held', async () => {
    const at = await refused()
    await at.clock.advance(20_000)
    const [row] = at.loop.status()
    expect(row?.ref).toEqual(web('b'))
    expect(row?.held).toContain('0 of 2 members of web would be left')
    expect(at.faults).toEqual(['POOL_AT_MINIMUM'])
    at.other.abort()
    await at.clock.runUntil(at.waiting.release())
    await at.clock.runUntil(at.loop.close())
  })

  it('is decided again at each look, however long it was refused', async () => {
    const at = await refused()
    await at.clock.advance(17_000)
    expect(at.states('b')).toEqual(['ready'])
    at.other.abort()
    await at.clock.runUntil(at.waiting.release())
    await at.clock.advance(2_100)
    expect(at.states('b')).not.toEqual(['ready'])
    await at.clock.runUntil(at.loop.close())
  })

  it('asks for no looks of its own', async () => {
    const at = await refused()
    const looks = (): number =>
      at.lb.requests.filter(({ verb, refs }) => verb === 'observe' && refs === 'all').length
    const before = looks()
    await at.clock.advance(10_000)
    expect(looks() - before).toBeLessThan(7)
    at.other.abort()
    await at.clock.runUntil(at.waiting.release())
    await at.clock.runUntil(at.loop.close())
  })
})
