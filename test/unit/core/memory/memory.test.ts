import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { drain, startDrain } from 'drainable'
import { fakeClock } from 'drainable/testing'
import { balancerOf } from '../../../../src/core/balancer/balancer.js'
import { web1 } from '../set-up.js'
import { grownByLook, heap, look, plain, type Looker } from './heap.js'

const LOOKS = 20_000
/** Bytes a look: less is what the collector leaves about. */
const MOST = 50

/** Who listens to which signal, and which signal was combined how often. */
function spySignals(): { readonly most: () => number; readonly mostCombined: () => number } {
  const seen = new Set<AbortSignal>()
  const combined = new Map<AbortSignal, number>()
  const listen = Reflect.get<EventTarget, 'addEventListener'>(
    EventTarget.prototype,
    'addEventListener',
  )
  vi.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (
    this: EventTarget,
    ...args: Parameters<typeof listen>
  ) {
    if (this instanceof AbortSignal) seen.add(this)
    listen.apply(this, args)
  })
  const any = AbortSignal.any.bind(AbortSignal)
  vi.spyOn(AbortSignal, 'any').mockImplementation((signals) => {
    const sources = [...signals]
    for (const source of sources) combined.set(source, (combined.get(source) ?? 0) + 1)
    return any(sources)
  })
  return {
    most: () =>
      Math.max(0, ...[...seen].slice(0, 100).map((s) => getEventListeners(s, 'abort').length)),
    mostCombined: () => Math.max(0, ...combined.values()),
  }
}

afterEach(() => vi.restoreAllMocks())

// Fault 18: AbortSignal.any on a signal that lives as long as the drain keeps memory for each look.
describe('thousands of looks', () => {
  test('of a held drain combine no signal with a lasting one', async () => {
    const signals = spySignals()
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock, signal: new AbortController().signal })
    await clock.runUntil(run.done)
    await look(clock, lb, 2_000)
    await run.release()
    expect(signals.mostCombined()).toBeLessThan(100)
  })

  test('of a held drain leave no listeners behind', async () => {
    const signals = spySignals()
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock, signal: new AbortController().signal })
    await clock.runUntil(run.done)
    await look(clock, lb, 2_000)
    const most = signals.most()
    await run.release()
    expect(most).toBeLessThan(10)
  })

  const lookers: readonly Looker[] = [
    'a drain that is held',
    'a drain that waits for its work',
    'a watch',
  ]

  // 100,000 of them: `npm run soak -- heap`.
  test.for(lookers)('of %s leave the heap flat', { timeout: 240_000 }, async (looker) => {
    expect(await grownByLook(looker, LOOKS)).toBeLessThan(MOST)
  })
})

// Fault 18: a member left idle is not remembered once no drain holds it.
describe('a drain that is over', () => {
  test('leaves nothing of its members on the heap', async () => {
    const size = 20_000
    const clock = fakeClock()
    const lb = plain(({ member }) => Buffer.alloc(size, member).toString('latin1'))
    const drainAll = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i += 1) {
        const ref = { pool: 'web', member: `web${i}` }
        await clock.runUntil(drain(lb, ref, { clock, settle: 0, seal: false }))
      }
    }
    await drainAll(0, 50)
    const before = await heap()
    await drainAll(50, 350)
    const grown = (await heap()) - before
    expect(lb.looks).toBeGreaterThan(300) // the provider lives: what was kept was kept for it
    expect(grown / 300).toBeLessThan(size / 4)
  })

  test('leaves no record at its balancer', async () => {
    const clock = fakeClock()
    const lb = plain()
    const { records } = balancerOf(lb, clock)
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const during = records.size
    await run.release()
    expect([during, records.size]).toEqual([1, 0])
  })
})
