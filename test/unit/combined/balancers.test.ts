import { describe, expect, test } from 'vitest'
import {
  carryOut,
  combineProviders,
  drain,
  isDrainableError,
  ready,
  select,
  startDrain,
  watch,
  type DrainEvent,
} from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, setUp } from './set-up.js'

const both = [a1, b1]

describe('a balancer that can not be read', () => {
  test('refuses the drain, with nothing changed anywhere', async () => {
    const { clock, a, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000 })
    const error = await thrown(clock.runUntil(drain(all, both, { clock })))
    expect(isDrainableError(error) && error.message).toMatch(/^b: /)
    expect(a.state(bare)).toBe('ready')
    expect(a.requests.some(({ verb }) => verb === 'apply')).toBe(false)
  })

  test('is waited for on request, and no idle is said before', async () => {
    const { clock, a, b, all } = setUp()
    b.disconnect()
    const policy = { timeout: '5m', seal: false, onUnreachable: 'wait' } as const
    await using run = startDrain(all, both, { clock, ...policy })
    await clock.advance(60_000)
    expect(a.state(bare)).toBe('drain')
    expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle'])
    expect(run.why()[0]).toMatchObject({ code: 'unreadable', ref: b1 })
    b.connect()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.members).toHaveLength(2)
    expect(b.state(bare)).toBe('drain')
  })

  test('that never comes back ends as unreachable at the deadline', async () => {
    const { clock, a, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000_000 })
    const policy = { timeout: '20s', seal: false, onUnreachable: 'wait' } as const
    await using run = startDrain(all, both, { clock, ...policy })
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('unreachable')
    expect(report.members.map(({ ref, held }) => [ref, held])).toEqual([
      [a1, true],
      [b1, false],
    ])
    expect(report.error?.message).toMatch(/^b: /)
    expect(a.state(bare)).toBe('drain')
  })

  test('after the drain began is unread, never absent', async () => {
    const { clock, b, all } = setUp()
    const end = b.occupy(bare)
    await using run = startDrain(all, both, { clock, timeout: '60s', seal: false })
    await clock.advance(3_000)
    b.failNext('throw', { verb: 'observe', times: 1_000_000 })
    end()
    const report = await clock.runUntil(run.done)
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['idle', 'unreachable'])
  })

  test('makes select fail rather than leave it out', async () => {
    const { clock, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000 })
    const error = await thrown(clock.runUntil(select(all, { address: '10.0.0.1' }, { clock })))
    expect(isDrainableError(error) && error.message).toMatch(/^b: /)
  })
})

describe('a name without a balancer', () => {
  test('that several balancers have is refused with their keys', async () => {
    const { clock, a, all } = setUp()
    for (const target of [bare, { pool: 'web' }]) {
      const error = await thrown(clock.runUntil(drain(all, target, { clock })))
      expect(isDrainableError(error, 'INVALID_OPTIONS') && error.message).toContain("'a', 'b'")
    }
    expect(a.state(bare)).toBe('ready')
  })

  test('that one balancer has is drained there', async () => {
    const { clock, a, b, all } = setUp({}, { b: { pools: { api: ['api1', 'api2'] } } })
    const api1 = { pool: 'api', member: 'api1' }
    const report = await clock.runUntil(drain(all, [a1, api1], { clock, seal: false }))
    expect(report.members.map(({ ref }) => ref)).toEqual([a1, { ...api1, balancer: 'b' }])
    expect([a.state(bare), b.state(api1)]).toEqual(['drain', 'drain'])
  })

  test('that no balancer has is not found', async () => {
    const { clock, all } = setUp()
    const error = await thrown(clock.runUntil(drain(all, { pool: 'x', member: 'y' }, { clock })))
    expect(isDrainableError(error, 'NOT_FOUND') && error.message).toContain("any of 'a', 'b'")
  })

  test('is refused while one balancer can not be read', async () => {
    const { clock, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000 })
    const error = await thrown(clock.runUntil(drain(all, bare, { clock })))
    expect(isDrainableError(error) && error.message).toMatch(/^b: .*name its balancer/)
  })

  test('with an unknown balancer is refused at once', () => {
    const { clock, all } = setUp()
    expect(() => startDrain(all, { ...bare, balancer: 'c' }, { clock })).toThrow(
      /no 'c', expected one of 'a', 'b'/,
    )
  })
})

describe('an address', () => {
  // The fake counts addresses up: the fourth server of `a` has one that `b` has not.
  const web4 = { pool: 'web', member: 'web4' }
  const more = { a: { pools: { web: ['web1', 'web2', 'web3', 'web4'] } } }

  async function addressOf4({ clock, a }: ReturnType<typeof setUp>): Promise<string> {
    const [reading] = await clock.runUntil(select(a, web4, { clock }))
    return (reading as { address: string }).address
  }

  test('is drained on the balancers that have it', async () => {
    const at = setUp({}, more)
    const address = await addressOf4(at)
    const report = await at.clock.runUntil(drain(at.all, { address }, { clock: at.clock }))
    expect(report.members.map(({ ref }) => ref)).toEqual([{ ...web4, balancer: 'a' }])
    expect(report.outcome).toBe('idle')
  })

  test('must be on all balancers when that is wished', async () => {
    const at = setUp({ onMissing: 'fail' }, more)
    const { clock, all, a } = at
    const address = await addressOf4(at)
    const error = await thrown(clock.runUntil(drain(all, { address }, { clock })))
    expect(isDrainableError(error, 'NOT_FOUND') && error.message).toMatch(/^b: /)
    expect(a.state(web4)).toBe('ready')
  })

  test('that no balancer has is not found', async () => {
    const { clock, all } = setUp()
    const error = await thrown(clock.runUntil(drain(all, { address: '10.9.9.9' }, { clock })))
    expect(isDrainableError(error, 'NOT_FOUND') && error.message).toMatch(
      /^on no balancer: a: no member has address 10\.9\.9\.9.*; b: no member has address 10\.9\.9\.9/,
    )
    expect(await clock.runUntil(select(all, { address: '10.9.9.9' }, { clock }))).toEqual([])
  })
})

describe('the other verbs over two balancers', () => {
  test('select names the balancer', async () => {
    const { clock, all } = setUp()
    const readings = await clock.runUntil(select(all, both, { clock }))
    expect(readings.map(({ ref }) => ref)).toEqual(both)
  })

  test('ready opens on both, and calls the check for each', async () => {
    const { clock, a, b, all } = setUp()
    await clock.runUntil(drain(all, both, { clock }))
    const asked: unknown[] = []
    const report = await clock.runUntil(
      ready(all, both, {
        clock,
        waitHealthy: async (ref) => {
          asked.push(ref)
        },
      }),
    )
    expect(report.members.map(({ ref, wasAdmin }) => [ref.balancer, wasAdmin])).toEqual([
      ['a', 'maint'],
      ['b', 'maint'],
    ])
    expect(asked).toEqual(expect.arrayContaining(both))
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })

  test('watch reports drains begun by others', async () => {
    const { clock, b, all } = setUp()
    const seen: DrainEvent[] = []
    const run = watch(all, both, { clock, onEvent: (event) => seen.push(event) })
    await clock.advance(1_000)
    b.setBehind(bare, 'drain')
    await clock.advance(10_000)
    await clock.runUntil(run.close())
    const idle = seen.filter((event) => event.type === 'idle')
    expect(idle.map(({ ref }) => ref)).toEqual([b1])
    expect(seen.at(-1)).toMatchObject({ type: 'end', outcome: 'aborted' })
  })

  test('a listener hears of both, with their keys', async () => {
    const { clock, all } = setUp()
    const heard: DrainEvent[] = []
    const events = all as ReturnType<typeof combineProviders>
    const hear = (event: DrainEvent): void => void heard.push(event)
    events.on('idle', hear).on('end', hear)
    await clock.runUntil(drain(all, both, { clock }))
    events.off('idle', hear).off('end', hear)
    const idle = heard.flatMap((event) => (event.type === 'idle' ? [event.ref] : []))
    expect(idle).toEqual(expect.arrayContaining(both))
    expect(heard.filter(({ type }) => type === 'end')).toHaveLength(1)
    await all.close()
  })

  test('a plan is carried out on the balancers that it names', async () => {
    const { clock, a, b, all } = setUp()
    const hold = { kind: 'hold', to: 'drain' } as const
    const steps = [b1, a1].map((ref) => ({ change: { ...hold, ref }, reason: 'test' }))
    const { steps: done } = await clock.runUntil(carryOut(all, { steps }, { clock, seal: false }))
    expect(done.map(({ change, outcome }) => [change.ref, outcome])).toEqual([
      [b1, 'done'],
      [a1, 'done'],
    ])
    expect([a.state(bare), b.state(bare)]).toEqual(['drain', 'drain'])
    const wrong = { steps: [{ change: { ...hold, ref: bare }, reason: 'test' }] }
    const error = await thrown(carryOut(all, wrong, { clock }))
    expect(isDrainableError(error, 'INVALID_OPTIONS') && error.message).toContain("'a', 'b'")
  })

  test('a plan continues when one of them can not be read', async () => {
    const { clock, a, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000 })
    const hold = { kind: 'hold', to: 'drain' } as const
    const steps = both.map((ref) => ({ change: { ...hold, ref }, reason: 'test' }))
    const { steps: done } = await clock.runUntil(carryOut(all, { steps }, { clock, seal: false }))
    expect(done).toMatchObject([
      { outcome: 'done', change: { ref: a1 }, report: { outcome: 'idle' } },
      { outcome: 'failed', change: { ref: b1 }, error: { code: 'CONNECTION_LOST' } },
    ])
    expect(done[1]?.error?.message).toMatch(/^b: /)
    expect(a.state(bare)).toBe('drain')
  })

  test('an aborted plan waits for each balancer, then rejects with the reason', async () => {
    const { clock, a, b, all } = setUp()
    b.failNext('throw', { verb: 'observe', times: 1_000 })
    a.occupy(bare)
    const stop = new AbortController()
    const hold = { kind: 'hold', to: 'drain' } as const
    const steps = both.map((ref) => ({ change: { ...hold, ref }, reason: 'test' }))
    const policy = { clock, signal: stop.signal, onAbort: 'restore' } as const
    const carried = thrown(carryOut(all, { steps }, policy))
    await clock.advance(1_000)
    expect(a.state(bare)).toBe('drain')
    const reason = new Error('enough')
    stop.abort(reason)
    expect(await clock.runUntil(carried)).toBe(reason)
    expect(a.state(bare)).toBe('ready')
  })

  test('closing it closes both', async () => {
    const { a, b, all } = setUp()
    await all.close()
    const ctx = { clock: setUp().clock, signal: new AbortController().signal }
    for (const part of [a, b]) await expect(part.observe('all', ctx)).rejects.toThrow()
  })
})

describe('combineProviders', () => {
  test('refuses balancers that can not be combined, with the reason', () => {
    const { clock, a, b, all } = setUp()
    const twin = fakeProvider({ pools: { web: ['web1'] }, clock, instance: 'a' })
    const renamed = Object.create(twin, { name: { value: 'another product' } }) as typeof twin
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [{}, /at least one/],
      [null, /expected an object/],
      [[a], /expected an object/],
      [{ a, twin }, /'a' and 'twin' have the same instance \(a\), so they are one balancer/],
      [{ a, renamed }, /'a' and 'renamed' have the same instance \(a\), so they are one balancer/],
      [{ 'a b': a }, /'a b' can't be a key/],
      [{ a, all }, /all is a combined provider itself/],
      [{ a, b: 7 }, /combineProviders\(\): b: .*expected a DrainableProvider/],
    ]
    for (const [parts, words] of cases)
      expect(() => combineProviders(parts as { a: typeof a })).toThrow(words)
    expect(() => combineProviders({ a, b }, { onMissing: 'wait' as 'skip' })).toThrow(/onMissing/)
  })
})
