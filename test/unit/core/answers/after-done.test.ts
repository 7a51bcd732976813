import { describe, expect, test } from 'vitest'
import {
  DrainableError,
  drain,
  ready,
  startDrain,
  withEvents,
  type DrainEvent,
  type Policy,
} from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { recorder, thrown, web1, web2 } from '../set-up.js'
import { balancer, json } from './balancer.js'

const denied = new DrainableError('FORBIDDEN', 'the device says "user ops may not do that"')

/** A drain that is idle and held, and the events that its handle gives from now on. */
async function held(options: Parameters<typeof balancer>[0] = {}, policy: Policy = {}) {
  const { clock, lb } = balancer(options)
  const seen = recorder()
  const run = startDrain(lb, web1, { clock, onEvent: seen.onEvent, ...policy })
  const report = await clock.runUntil(run.done)
  const before = seen.events.length
  const later = (): readonly DrainEvent[] => seen.events.slice(before)
  const types = (): readonly string[] => later().map(({ type }) => type)
  return { clock, lb, run, report, later, types }
}

// Fault 16: what happens to a held drain after `done` is said by its handle too.
describe('a handle after done', () => {
  test('says idle-lost to onEvent when work is seen', async () => {
    const { clock, lb, run, types } = await held()
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(types()).toContain('idle-lost')
  })

  test('says idle-lost to its listeners', async () => {
    const { clock, lb, run } = await held()
    const heard: string[] = []
    run.on('idle-lost', ({ ref }) => heard.push(ref.member))
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(heard).toEqual(['web1'])
  })

  test('says when the member is idle again', async () => {
    const { clock, lb, run, later } = await held()
    const end = lb.occupy(web1)
    await clock.advance(2_000)
    end()
    await clock.advance(5_000)
    await run.release()
    const said = later().filter(({ type }) => type !== 'load')
    expect(said.filter(({ type }) => type === 'idle-lost' || type === 'idle')).toEqual([
      expect.objectContaining({ type: 'idle-lost', ref: web1 }),
      expect.objectContaining({ type: 'idle', ref: web1 }),
    ])
    expect(said.filter(({ type }) => type === 'phase')).toEqual([
      expect.objectContaining({ from: 'idle', to: 'draining' }),
      expect.objectContaining({ from: 'draining', to: 'idle' }),
    ])
  })

  test('says idle-lost and no load', async () => {
    const { clock, lb, run, types } = await held()
    const end = lb.occupy(web1, 3)
    await clock.advance(3_000)
    end()
    await clock.advance(3_000)
    await run.release()
    expect(types()).toContain('idle-lost')
    expect(types()).not.toContain('load')
  })

  test('says overruled when somebody opens the member', async () => {
    const { clock, lb, run, later } = await held()
    lb.setBehind(web1, 'ready')
    await clock.advance(1_000)
    await run.release()
    expect(later()).toContainEqual(
      expect.objectContaining({ type: 'overruled', found: 'ready', reset: false }),
    )
  })

  test('says removed when the member is gone', async () => {
    const { clock, lb, run, types } = await held()
    lb.setBehind(web1, 'gone')
    await clock.advance(2_000)
    await run.release()
    expect(types()).toContain('removed')
  })

  test('says what refuses to put the hold back', async () => {
    const { clock, lb, run, later } = await held()
    lb.failNext('reject', { verb: 'apply', error: denied, times: 20 })
    lb.reload()
    await clock.advance(2_000)
    await run.release()
    expect(later()).toContainEqual(
      expect.objectContaining({
        type: 'fault',
        error: expect.objectContaining({ code: 'FORBIDDEN' }) as unknown,
      }),
    )
  })

  test('says when a hold put back is in force again', async () => {
    const { clock, lb, run, types } = await held()
    lb.reload()
    await clock.advance(2_000)
    const state = lb.state(web1)
    await run.release()
    expect(state).toBe('maint')
    expect(types()).toContain('in-force')
  })

  test('says idle-lost after a reload that lets work in', async () => {
    const { clock, lb, run, types } = await held()
    lb.reload()
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(types()).toContain('idle-lost')
  })

  // What must stay true.
  test('says no idle-lost of a forgotten hold that is put back', async () => {
    const { clock, lb, run } = await held()
    const heard: string[] = []
    run.on('idle-lost', () => heard.push('idle-lost'))
    run.on('overruled', () => heard.push('overruled'))
    lb.reload()
    await clock.advance(5_000)
    const state = lb.state(web1)
    await run.release()
    expect(state).toBe('maint')
    expect(heard).toEqual([])
  })

  test('says nothing while the balancer can not be read', async () => {
    const { clock, lb, run, types } = await held()
    lb.disconnect()
    await clock.advance(5_000)
    lb.connect()
    await clock.advance(5_000)
    await run.release()
    expect(types().filter((type) => type !== 'fault')).toEqual([])
  })

  test('says nothing after its release', async () => {
    const { clock, lb, run, types } = await held()
    await run.release()
    const end = lb.occupy(web1)
    await clock.advance(2_000)
    end()
    lb.setBehind(web1, 'ready')
    await clock.advance(2_000)
    expect(types()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('ends its iterator with end all the same', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    const types: string[] = []
    const reading = (async () => {
      for await (const event of run) types.push(event.type)
    })()
    await clock.runUntil(run.done)
    lb.occupy(web1)
    await clock.advance(2_000)
    await clock.runUntil(reading)
    await run.release()
    expect(types.filter((type) => type === 'end')).toHaveLength(1)
    expect(types.at(-1)).toBe('end')
  })

  test('keeps the report that done gave', async () => {
    const { clock, lb, run, report } = await held()
    const said = json(report)
    lb.occupy(web1)
    await clock.advance(2_000)
    const now = json(await run.done)
    await run.release()
    expect(now).toEqual(said)
  })

  test('tells the provider too', async () => {
    const { clock, lb: plain } = balancer()
    const lb = withEvents(plain)
    const heard: string[] = []
    lb.on('idle-lost', ({ ref }) => heard.push(ref.member))
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    await lb.close()
    expect(heard).toEqual(['web1'])
  })
})

/** Waits on the fake clock, or until the signal fires: then it rejects with the reason. */
function work(clock: FakeClock, ms: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimeout(() => resolve('done'), ms)
    signal.addEventListener('abort', () => {
      cancel()
      reject(signal.reason)
    })
  })
}

/** Drains web1, does something to it while the action works, and gives how drain() ended. */
async function whileActing(
  meddle: (lb: FakeProvider, clock: FakeClock) => unknown,
  policy: Policy = {},
  latency = 0,
) {
  const { clock, lb } = balancer({ latency })
  const signals: AbortSignal[] = []
  const acting = Promise.withResolvers<undefined>()
  const run = drain(lb, web1, { clock, timeout: '1m', ...policy }, async (_, { signal }) => {
    signals.push(signal)
    acting.resolve(undefined)
    return work(clock, 10_000, signal)
  })
  const ended = run.then(
    (value) => ({ value, error: undefined }),
    (error: unknown) => ({ value: undefined, error }),
  )
  await clock.runUntil(Promise.race([acting.promise, ended]))
  await clock.advance(500)
  await meddle(lb, clock)
  const outcome = await clock.runUntil(ended)
  return { ...outcome, signal: signals[0], clock, lb }
}

// Fault 16: the action learns that its member is not idle any more.
describe("the action's signal fires, and drain() rejects", () => {
  test.each<[string, (lb: FakeProvider) => void]>([
    ['work is in flight', (lb) => void lb.occupy(web1)],
    ['work is queued', (lb) => void lb.queue(web1)],
    ['work came and went', (lb) => lb.arrive(web1)],
    ['a reload let work in', (lb) => (lb.reload(), void lb.occupy(web1))],
  ])('with IDLE_LOST where %s', async (_, meddle) => {
    const { error, signal } = await whileActing(meddle)
    expect(error).toMatchObject({ code: 'IDLE_LOST', retryable: false, ref: web1 })
    expect(signal?.reason).toBe(error)
  })

  test('with IDLE_LOST where the hold can not be put back', async () => {
    const { error } = await whileActing((lb) => {
      lb.failNext('reject', { verb: 'apply', error: denied, times: 100 })
      lb.reload()
    })
    expect(error).toMatchObject({ code: 'IDLE_LOST' })
  })

  test('with DRAIN_OVERRULED where somebody opens the member', async () => {
    const { error, signal, lb } = await whileActing((lb) => lb.setBehind(web1, 'ready'))
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(signal?.reason).toBe(error)
    expect(lb.state(web1)).toBe('ready')
  })

  test('with DRAIN_OVERRULED where this process opens the member', async () => {
    const { error, lb } = await whileActing((lb, clock) =>
      clock.runUntil(ready(lb, web1, { clock })),
    )
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(lb.state(web1)).toBe('ready')
  })

  test('where one of several members is lost', async () => {
    const { clock, lb } = balancer({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    const caught = thrown(
      drain(lb, [web1, web2], { clock }, (_, { signal }) => {
        clock.setTimeout(() => void lb.occupy(web2), 500)
        return work(clock, 10_000, signal)
      }),
    )
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'IDLE_LOST', ref: web2 })
  })

  test('once the action has ended, and not before', async () => {
    const { clock, lb } = balancer()
    let fired = 0
    const caught = thrown(
      drain(lb, web1, { clock }, async (_, { signal }) => {
        clock.setTimeout(() => void lb.occupy(web1), 500)
        await work(clock, 60_000, signal).catch(() => (fired = clock.now()))
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 5_000))
        throw signal.reason
      }),
    )
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'IDLE_LOST' })
    expect(clock.now() - fired).toBeGreaterThanOrEqual(5_000)
    expect(clock.pending).toBe(0)
  })
})

// Fault 16: what the signal leaves to the action.
describe("the action's signal does not", () => {
  test('fire for a forgotten hold put back with nothing seen', async () => {
    const { value, signal, lb } = await whileActing((lb) => lb.reload())
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
    expect(lb.state(web1)).toBe('maint')
  })

  test('fire for a second and a third reload', async () => {
    const { value, signal } = await whileActing(async (lb, clock) => {
      for (let i = 0; i < 3; i += 1) {
        lb.reload()
        await clock.advance(1_500)
      }
    })
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
  })

  test('fire for a put-back whose answer was lost', async () => {
    const { value, signal, lb } = await whileActing((lb) => {
      lb.failNext('throw', { verb: 'apply', times: 2 })
      lb.reload()
    })
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
    expect(lb.state(web1)).toBe('maint')
  })

  test('fire for a put-back refused once for now', async () => {
    const { value, signal, lb } = await whileActing((lb) => {
      const error = new DrainableError('CONFLICT', 'not now')
      lb.failNext('reject', { verb: 'apply', error })
      lb.reload()
    })
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
    expect(lb.state(web1)).toBe('maint')
  })

  test('fire for looks that fail', async () => {
    const { value, signal } = await whileActing(async (lb, clock) => {
      lb.disconnect()
      await clock.advance(3_000)
      lb.connect()
    })
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
  })

  test('fire for work that the caller wished to go on with', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const policy = { clock, timeout: '3s', onTimeout: 'proceed' } as const
    const result = await clock.runUntil(
      drain(lb, web1, policy, (report, { signal }) =>
        work(clock, 3_000, signal).then((done) => `${report.outcome} ${done}`),
      ),
    )
    expect(result).toBe('proceeded done')
  })

  test('take the result of an action that goes on regardless', async () => {
    const { clock, lb } = balancer()
    let aborted: boolean | undefined
    const result = await clock.runUntil(
      drain(lb, web1, { clock }, async (_, { signal }) => {
        lb.occupy(web1)
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 2_000))
        aborted = signal.aborted
        return 42
      }),
    )
    expect(result).toBe(42)
    expect(aborted).toBe(true)
  })

  test("hide the action's own error", async () => {
    const { clock, lb } = balancer()
    const own = new Error('disk full')
    let aborted: boolean | undefined
    const caught = thrown(
      drain(lb, web1, { clock }, async (_, { signal }) => {
        lb.occupy(web1)
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 2_000))
        aborted = signal.aborted
        throw own
      }),
    )
    expect(await clock.runUntil(caught)).toBe(own)
    expect(aborted).toBe(true)
  })

  test('fire after the action has ended', async () => {
    const { value, signal, clock, lb } = await whileActing(() => undefined)
    lb.occupy(web1)
    lb.setBehind(web1, 'ready')
    await clock.advance(5_000)
    expect(value).toBe('done')
    expect(signal?.aborted).toBe(false)
    expect(clock.pending).toBe(0)
  })
})
