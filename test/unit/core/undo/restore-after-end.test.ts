import { describe, expect, test } from 'vitest'
import { startDrain, type Drain, type Policy, type TicketStore } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, web1 } from '../set-up.js'
import { applies, balancer, json } from '../balancer.js'

interface Ended {
  readonly clock: FakeClock
  readonly lb: FakeProvider
  readonly run: Drain
}

async function busy(policy: Policy = {}, timeout: '3s' | '1m' = '1m'): Promise<Ended> {
  const { clock, lb } = balancer()
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout, ...policy })
  await clock.advance(2_000)
  return { clock, lb, run }
}

const ends: readonly (readonly [string, () => Promise<Ended>])[] = [
  [
    'an abort',
    async () => {
      const stop = new AbortController()
      const all = await busy({ signal: stop.signal })
      stop.abort(new Error('enough'))
      await all.clock.runUntil(all.run.done)
      return all
    },
  ],
  [
    'a release in mid-drain',
    async () => {
      const all = await busy()
      await all.run.release()
      return all
    },
  ],
  [
    'a release after idle',
    async () => {
      const { clock, lb } = balancer()
      const run = startDrain(lb, web1, { clock })
      await clock.runUntil(run.done)
      await run.release()
      return { clock, lb, run }
    },
  ],
  [
    'a dispose',
    async () => {
      const all = await busy()
      await all.run[Symbol.asyncDispose]()
      return all
    },
  ],
  [
    'its deadline and a release',
    async () => {
      const all = await busy({}, '3s')
      await all.clock.runUntil(all.run.done)
      await all.run.release()
      return all
    },
  ],
  [
    'ending unreachable and a release',
    async () => {
      const all = await busy({}, '3s')
      all.lb.disconnect()
      await all.clock.runUntil(all.run.done)
      await all.run.release()
      all.lb.connect()
      return all
    },
  ],
]

// Fault 17: restore() of a handle works in every state.
describe('restore() of a handle', () => {
  test.each(ends)('opens the member after %s', async (_, end) => {
    const { clock, lb, run } = await end()
    expect(lb.state(web1)).not.toBe('ready')
    const report = await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
    expect(clock.pending).toBe(0)
  })

  test.each(ends)('keeps what done has said after %s', async (_, end) => {
    const { clock, run } = await end()
    const said = json(await run.done)
    expect((await clock.runUntil(run.restore())).outcome).toBe('restored')
    expect(json(await run.done)).toEqual(said)
  })

  test('drops the ticket after an abort', async () => {
    const map = new Map<string, unknown>()
    const tickets: TicketStore = {
      get: async (key) => map.get(key),
      set: async (key, value) => map.set(key, json(value)),
      delete: async (key) => map.delete(key),
    }
    const stop = new AbortController()
    const { clock, run } = await busy({ signal: stop.signal, tickets, id: 'one' })
    stop.abort(new Error('enough'))
    await clock.runUntil(run.done)
    expect(map.has('one')).toBe(true)
    await clock.runUntil(run.restore())
    expect(map.has('one')).toBe(false)
  })

  test('resolves twice when called twice', async () => {
    const { clock, lb, run } = await busy()
    await run.release()
    const reports = await clock.runUntil(Promise.all([run.restore(), run.restore()]))
    const again = await clock.runUntil(run.restore())
    expect([...reports, again].map(({ outcome }) => outcome)).toEqual([
      'restored',
      'restored',
      'restored',
    ])
    expect(lb.state(web1)).toBe('ready')
  })

  test('after a release is not given up by a failed look', async () => {
    const { clock, lb, run } = await busy()
    await run.release()
    lb.failNext('throw', { verb: 'observe', times: 2 })
    const report = await clock.runUntil(run.restore())
    expect(only(report).outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
  })

  test('before the first look sends no hold, and ends done as aborted', async () => {
    const { clock, lb } = balancer({ latency: 50 })
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(10)
    await clock.runUntil(run.restore())
    const report = await clock.runUntil(run.done)
    await clock.advance(5_000)
    await run.release()
    expect(report.outcome).toBe('aborted')
    expect(applies(lb)).toEqual([])
    expect(lb.state(web1)).toBe('ready')
  })

  // What must stay true.
  test.each(ends)('leaves alone what another client changed after %s', async (_, end) => {
    const { clock, lb, run } = await end()
    const theirs = lb.state(web1) === 'maint' ? 'drain' : 'maint'
    lb.setBehind(web1, theirs)
    const report = await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe(theirs)
    expect(only(report).outcome).toBe('overruled')
  })

  test('changes nothing if the drain was refused', async () => {
    const { clock, lb } = balancer()
    lb.failNext('reject', { verb: 'apply' })
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const report = await clock.runUntil(run.restore())
    expect(applies(lb)).toHaveLength(1)
    expect(only(report).outcome).toBe('restored')
  })

  test('is not replaced by a release, which opens nothing', async () => {
    const { clock, lb, run } = await busy()
    await run.release()
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })
})
