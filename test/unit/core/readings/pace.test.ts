import { describe, expect, it } from 'vitest'
import { drain, startDrain, stepDrain, watch, type DrainableProvider } from 'drainable'
import { fakeClock, fakeProvider, type FakeClock } from 'drainable/testing'

const web1 = { pool: 'web', member: 'web1' }

/** A balancer of two servers that remembers when it was looked at. */
function balancer() {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const looks: number[] = []
  const counted = new Proxy(lb, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (key === 'observe') looks.push(clock.now())
        return (value as (...all: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  return { clock, lb, looks, counted: counted as DrainableProvider }
}

const gaps = (looks: readonly number[]): number[] =>
  looks.slice(1).map((at, n) => at - (looks[n] ?? 0))

async function after(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms)
}

describe('the pace wished by the caller', () => {
  it('spaces the looks while work is in flight', async () => {
    const { clock, lb, looks, counted } = balancer()
    lb.occupy(web1)
    await using run = startDrain(counted, web1, { timeout: '10m', pace: '7s', clock })
    await clock.runUntil(run.inForce)
    looks.length = 0
    await after(clock, 70_000)
    expect(looks.length).toBeGreaterThan(5)
    expect(Math.min(...gaps(looks))).toBeGreaterThanOrEqual(7_000)
  })

  it('does not delay a look where a quiet time ends or the deadline comes', async () => {
    const { clock, lb, counted } = balancer()
    const from = clock.now()
    const report = await clock.runUntil(drain(counted, web1, { timeout: '2m', pace: '30s', clock }))
    expect(report.outcome).toBe('idle')
    expect(clock.now() - from).toBeLessThan(30_000)
    lb.occupy({ pool: 'web', member: 'web2' })
    const began = clock.now()
    await using late = startDrain(
      counted,
      { pool: 'web', member: 'web2' },
      { timeout: '20s', pace: '1m', keepReady: 0, clock },
    )
    expect((await clock.runUntil(late.done)).outcome).toBe('timeout')
    expect(clock.now() - began).toBeLessThan(21_000)
  })

  it('does not delay the looks while the action runs', async () => {
    const { clock, looks, counted } = balancer()
    const done = Promise.withResolvers<undefined>()
    const running = Promise.withResolvers<undefined>()
    const call = drain(counted, web1, { timeout: '2m', pace: '30s', clock }, () => {
      running.resolve(undefined)
      return done.promise
    })
    await clock.runUntil(running.promise)
    looks.length = 0
    await after(clock, 1_000)
    expect(looks.length).toBeGreaterThan(10)
    done.resolve(undefined)
    await clock.runUntil(call)
  })

  it('spaces the looks of a watch', async () => {
    const { clock, lb, looks, counted } = balancer()
    lb.occupy(web1)
    await using view = watch(counted, web1, { pace: '5s', clock })
    await after(clock, 60_000)
    expect(view.report().members[0]?.outcome).toBe('aborted')
    expect(looks.length).toBeGreaterThan(5)
    expect(Math.min(...gaps(looks.slice(1)))).toBeGreaterThanOrEqual(5_000)
  })

  it('is the shortest againIn of a step, except after a change', async () => {
    const { clock, lb, counted } = balancer()
    lb.occupy(web1)
    const start = { target: web1, policy: { timeout: '10m' } } as const
    const first = await clock.runUntil(stepDrain(counted, start, { pace: '4s', clock }))
    expect(first.againIn).toBe(0)
    const sent = await clock.runUntil(stepDrain(counted, first.ticket, { pace: '4s', clock }))
    const held = await clock.runUntil(stepDrain(counted, sent.ticket, { pace: '4s', clock }))
    expect(held.outcome).toBeUndefined()
    expect(held.againIn).toBeGreaterThanOrEqual(4_000)
  })

  it('is refused if it is not a duration', () => {
    const { counted } = balancer()
    expect(() => startDrain(counted, web1, { pace: 'soon' as '1s' })).toThrow(/pace/)
    expect(() => startDrain(counted, web1, { pace: 5 })).toThrow(/pace/)
  })
})
