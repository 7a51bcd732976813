import { describe, expect, test } from 'vitest'
import {
  drain,
  isDrainableError,
  ready,
  restore,
  startDrain,
  type Drain,
  type DrainReport,
} from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1, web2, web3 } from '../set-up.js'
import { anotherObject, json, ofKind, recordChanges, rig, type Rig } from '../rig.js'

const POOLS = { web: ['web1', 'web2', 'web3', 'web4'] }

/** The outcome of each member, by name. */
function outcomes(report: DrainReport): Record<string, string> {
  return Object.fromEntries(report.members.map(({ ref, outcome }) => [ref.member, outcome]))
}

/** A group of which web1 is idle and web2 busy; `end` ends the work of web2. */
function halfIdle(): Rig & { readonly end: () => void } {
  const both = rig({ pools: POOLS })
  return { ...both, end: both.lb.occupy(web2) }
}

/** Waits until web1 has an outcome in a drain that goes on. */
async function untilIdle(clock: FakeClock, lb: FakeProvider): Promise<void> {
  await clock.advance(5_000)
  expect(lb.state(web1)).toBe('maint')
}

// Fault 2
describe('a group whose member another call has opened since', () => {
  test('does not run its action after ready()', async () => {
    const { clock, lb, end } = halfIdle()
    let ran = false
    const action = async (): Promise<void> => void (ran = true)
    const caught = thrown(drain(lb, [web1, web2], { clock, timeout: '10m' }, action))
    await untilIdle(clock, lb)
    await clock.runUntil(ready(lb, web1, { clock }))
    end()
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'DRAIN_OVERRULED', ref: web1 })
    expect(ran).toBe(false)
  })

  test('rejects with the report without an action, too', async () => {
    const { clock, lb, end } = halfIdle()
    const caught = thrown(drain(lb, [web1, web2], { clock, timeout: '10m' }))
    await untilIdle(clock, lb)
    await clock.runUntil(ready(lb, web1, { clock }))
    end()
    const error = await clock.runUntil(caught)
    expect(isDrainableError(error, 'DRAIN_OVERRULED')).toBe(true)
    expect(isDrainableError(error) && error.report && outcomes(error.report)).toEqual({
      web1: 'overruled',
      web2: 'idle',
    })
  })

  test('ends as overruled for that member after ready()', async () => {
    const { clock, lb, end } = halfIdle()
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await untilIdle(clock, lb)
    await clock.runUntil(ready(lb, web1, { clock }))
    end()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('overruled')
    const [first] = report.members
    expect(first).toMatchObject({ outcome: 'overruled', error: { code: 'DRAIN_OVERRULED' } })
    expect(first).toMatchObject({ verifiedIdle: false, sealed: false })
    expect(lb.state(web1)).toBe('ready')
  })

  test('goes on after restore() of another ticket of the member', async () => {
    const { clock, lb, end } = halfIdle()
    await using first = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.runUntil(first.done)
    const ticket = json(await first.ticket)
    await first.release()
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await untilIdle(clock, lb)
    await clock.runUntil(restore(lb, ticket, { clock }))
    end()
    expect(outcomes(await clock.runUntil(run.done))).toEqual({ web1: 'idle', web2: 'idle' })
    expect(lb.state(web1)).toBe('maint')
  })

  test('goes on after restore() of another handle', async () => {
    const { clock, lb, end } = halfIdle()
    await using first = startDrain(lb, web1, { clock, timeout: '10m' })
    await using run = startDrain(lb, [web1, web2], {
      clock,
      timeout: '10m',
      onOverrule: 'reapply',
    })
    await untilIdle(clock, lb)
    await clock.runUntil(first.restore())
    await clock.advance(20_000)
    expect(lb.state(web1)).toBe('maint')
    end()
    expect(outcomes(await clock.runUntil(run.done))).toEqual({ web1: 'idle', web2: 'idle' })
  })

  test('is overruled before the other call sends anything', async () => {
    const { clock, lb, end } = halfIdle()
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await untilIdle(clock, lb)
    const seen: unknown[] = []
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      if (changes.some(({ kind }) => kind === 'restore')) seen.push(outcomes(run.report())['web1'])
      return apply(changes, ctx)
    }
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(seen.length).toBeGreaterThan(0)
    expect(new Set(seen)).toEqual(new Set(['overruled']))
    end()
    await clock.runUntil(run.done)
  })

  test('is not put back, whatever onOverrule says', async () => {
    const { clock, lb, end } = halfIdle()
    await using run = startDrain(lb, [web1, web2], {
      clock,
      timeout: '10m',
      onOverrule: 'reapply',
    })
    await untilIdle(clock, lb)
    await clock.runUntil(ready(lb, web1, { clock }))
    lb.reload()
    await clock.advance(10_000)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'drain'])
    end()
    expect(outcomes(await clock.runUntil(run.done))['web1']).toBe('overruled')
  })
})

// Fault 2: what must not be overruled
describe('a group whose member was seen open by another run of this process', () => {
  /** web1 is idle in a drain that looks seldom; another run has seen that another client opened it. */
  async function sawOpened({ clock, lb, end }: ReturnType<typeof halfIdle>): Promise<{
    readonly run: Drain
    readonly heard: ReturnType<typeof recorder>
  }> {
    const heard = recorder()
    const { onEvent } = heard
    const run = startDrain(lb, [web1, web2], { clock, timeout: '10m', pace: '5m', onEvent })
    await untilIdle(clock, lb)
    await using other = startDrain(anotherObject(lb), web1, { clock, timeout: '10m' })
    await clock.runUntil(other.inForce)
    lb.setBehind(web1, 'ready')
    expect(only(await clock.runUntil(other.done)).outcome).toBe('overruled')
    end()
    return { run, heard }
  }

  test('is not idle when a call takes the other member', async () => {
    const both = halfIdle()
    const { run } = await sawOpened(both)
    const opened = ready(both.lb, web2, { clock: both.clock })
    const report = await both.clock.runUntil(run.done, 600_000)
    expect(outcomes(report)).toEqual({ web1: 'overruled', web2: 'overruled' })
    await both.clock.runUntil(opened)
    await both.clock.runUntil(run.release())
  })

  test('proves idle anew if the member is closed before its next look', async () => {
    const both = halfIdle()
    const { run, heard } = await sawOpened(both)
    both.lb.setBehind(web1, 'maint')
    const report = await both.clock.runUntil(run.done, 600_000)
    expect(outcomes(report)).toEqual({ web1: 'idle', web2: 'idle' })
    const said = heard.events.filter(({ type }) => type === 'idle' || type === 'idle-lost')
    expect(said.map((one) => `${one.type} ${'ref' in one ? one.ref.member : ''}`)).toEqual([
      'idle web1',
      'idle-lost web1',
      'idle web2',
      'idle web1',
    ])
    await both.clock.runUntil(run.release())
  })
})

describe('a group whose own members nobody opened', () => {
  test('runs its action after ready() opened another member', async () => {
    const { clock, lb, end } = halfIdle()
    lb.setBehind(web3, 'drain')
    const action = async (report: DrainReport): Promise<unknown> => outcomes(report)
    const run = drain(lb, [web1, web2], { clock, timeout: '10m' }, action)
    await untilIdle(clock, lb)
    await clock.runUntil(ready(lb, web3, { clock }))
    end()
    expect(await clock.runUntil(run)).toEqual({ web1: 'idle', web2: 'idle' })
  })

  test('ends idle after a reload forgot its holds, which were put back', async () => {
    const { clock, lb, end } = halfIdle()
    const seen = recorder()
    await using run = startDrain(lb, [web1, web2], {
      clock,
      timeout: '10m',
      onEvent: seen.onEvent,
    })
    await untilIdle(clock, lb)
    lb.reload()
    await clock.advance(10_000)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['maint', 'drain'])
    end()
    expect(outcomes(await clock.runUntil(run.done))).toEqual({ web1: 'idle', web2: 'idle' })
    expect(seen.of('overruled')).toEqual([])
  })

  test('runs its action to the end through a reload that forgot its holds', async () => {
    const { clock, lb, end } = halfIdle()
    end()
    const action = async (): Promise<string> => {
      lb.reload()
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 10_000))
      return [lb.state(web1), lb.state(web2)].join()
    }
    const run = drain(lb, [web1, web2], { clock, timeout: '10m' }, action)
    expect(await clock.runUntil(run)).toBe('maint,maint')
  })

  test('ends idle after another drain of a member was released', async () => {
    const { clock, lb, end } = halfIdle()
    await using first = startDrain(lb, web1, { clock, timeout: '10m' })
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await untilIdle(clock, lb)
    await first.release()
    end()
    expect(outcomes(await clock.runUntil(run.done))).toEqual({ web1: 'idle', web2: 'idle' })
  })

  test('keeps its outcome when ready() comes after it', async () => {
    const { clock, lb, end } = halfIdle()
    end()
    const seen = recorder()
    await using run = startDrain(lb, [web1, web2], { clock, onEvent: seen.onEvent })
    await clock.runUntil(run.done)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(5_000)
    expect(outcomes(await run.done)).toEqual({ web1: 'idle', web2: 'idle' })
    expect(seen.of('end')).toHaveLength(1)
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'maint'])
  })
})

// Fault 12, second half: the order of two calls with opposite goals is the order in which they were made
describe('two calls with opposite goals on one member', () => {
  for (const latency of [0, 50]) {
    test(`ready() right after startDrain() wins, looks take ${latency} ms`, async () => {
      const { clock, lb } = rig({ latency })
      await using run = startDrain(lb, web1, { clock, timeout: '1m' })
      const opened = ready(lb, web1, { clock })
      await clock.runUntil(opened)
      expect((await clock.runUntil(run.done)).outcome).toBe('overruled')
      await clock.advance(10_000)
      expect(lb.state(web1)).toBe('ready')
    })

    test(`ready() in the first look of a drain wins, looks take ${latency} ms`, async () => {
      const { clock, lb } = rig({ latency })
      lb.failNext('hang', { verb: 'observe' })
      await using run = startDrain(lb, web1, { clock, timeout: '10s' })
      await clock.advance(60)
      const sent = recordChanges(lb, clock)
      await clock.runUntil(ready(lb, web1, { clock }))
      await clock.runUntil(run.done)
      expect(ofKind(sent, 'hold')).toEqual([])
      // It never had a look of its own: nothing was changed.
      expect(run.report().outcome).toBe('unreachable')
    })

    test(`startDrain() right after ready() wins, looks take ${latency} ms`, async () => {
      const { clock, lb } = rig({ latency })
      lb.setBehind(web1, 'drain')
      lb.setHealth(web1, 'unknown') // so that ready() waits for the first check
      const caught = thrown(ready(lb, web1, { clock, waitHealthy: '1m' }))
      await using run = startDrain(lb, web1, { clock, timeout: '1m' })
      expect(await clock.runUntil(caught)).toMatchObject({ code: 'DRAIN_OVERRULED' })
      expect(only(await clock.runUntil(run.done)).outcome).toBe('idle')
      expect(lb.state(web1)).toBe('maint')
    })
  }

  test('a ready() that waits for health is overruled by a later drain', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    lb.setHealth(web1, 'unknown')
    const caught = thrown(ready(lb, web1, { clock, waitHealthy: '5m' }))
    await clock.advance(10_000)
    await using run = startDrain(lb, web1, { clock, timeout: '1m' })
    expect(await clock.runUntil(caught, 1_000)).toMatchObject({ code: 'DRAIN_OVERRULED' })
    lb.setHealth(web1, 'up')
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('maint')
  })

  test('a restore() is overruled by a later drain of the member', async () => {
    const { clock, lb } = rig()
    await using first = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.runUntil(first.done)
    lb.setHealth(web1, 'unknown') // so that the undo waits under drain
    const undone = first.restore()
    await clock.advance(2_000)
    await using later = startDrain(lb, web1, { clock, timeout: '1m' })
    expect(only(await clock.runUntil(undone)).outcome).toBe('overruled')
    lb.setHealth(web1, 'up')
    expect((await clock.runUntil(later.done)).outcome).toBe('idle')
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('maint')
  })

  test('two drains of one member both end idle', async () => {
    const { clock, lb } = rig()
    await using first = startDrain(lb, web1, { clock })
    await using second = startDrain(lb, web1, { clock })
    const reports = await clock.runUntil(Promise.all([first.done, second.done]))
    expect(reports.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
  })

  test('an undo of a drain that changed nothing leaves the other alone', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    await using first = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(100)
    await using second = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(100)
    expect(only(await clock.runUntil(second.restore())).outcome).toBe('restored')
    lb.reload()
    await clock.advance(1_000)
    expect([lb.state(web1), first.report().members[0]?.phase]).toEqual(['drain', 'draining'])
  })

  test('an abort of a drain that found its member drained stops no action', async () => {
    const { clock, lb } = rig()
    const aborted = new AbortController()
    const ran = drain(lb, web1, { clock }, async (_, { signal }) => {
      const policy = { clock, signal: aborted.signal, onAbort: 'restore' } as const
      const second = startDrain(lb, web1, policy)
      await clock.advance(10)
      aborted.abort(new Error('enough'))
      await clock.advance(10_000)
      await second.done
      return signal.aborted
    })
    expect(await clock.runUntil(ran)).toBe(false)
    expect(lb.state(web1)).toBe('maint')
  })

  test('a drain of one member goes on beside a ready() of another', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web3, 'drain')
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(ready(lb, web3, { clock }))
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    expect([lb.state(web1), lb.state(web3)]).toEqual(['maint', 'ready'])
  })
})
