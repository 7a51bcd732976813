import { describe, expect, test } from 'vitest'
import { DrainableError, drain, ready, type Policy } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { thrown, web1, web2 } from '../set-up.js'
import { balancer } from '../balancer.js'

const denied = new DrainableError('FORBIDDEN', 'the device says "user ops may not do that"')

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
  let asked = 0

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

  test('with IDLE_LOST if the hold can not be put back', async () => {
    const { error } = await whileActing((lb) => {
      lb.failNext('reject', { verb: 'apply', error: denied, times: 100 })
      lb.reload()
    })
    expect(error).toMatchObject({ code: 'IDLE_LOST' })
  })

  // An unanswered change stops sending, and nothing else: the call has a limit of 30 s.
  test.each<[string, (lb: FakeProvider) => void]>([
    ['work is in flight', (lb) => void lb.occupy(web1)],
    ['work is queued', (lb) => void lb.queue(web1)],
    ['work came and went', (lb) => lb.arrive(web1)],
  ])('at once where %s while a put-back has no answer', async (_, meddle) => {
    const { error, clock } = await whileActing(async (lb, clock) => {
      lb.failNext('hang', { verb: 'apply' })
      lb.reload()
      await clock.advance(1_000)
      meddle(lb)
      asked = clock.now()
    })
    expect(error).toMatchObject({ code: 'IDLE_LOST', ref: web1 })
    expect(clock.now() - asked).toBeLessThan(200)
  })

  test('with DRAIN_OVERRULED if another client opens the member', async () => {
    const { error, signal, lb } = await whileActing((lb) => lb.setBehind(web1, 'ready'))
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(signal?.reason).toBe(error)
    expect(lb.state(web1)).toBe('ready')
  })

  test('with DRAIN_OVERRULED if this process opens the member', async () => {
    const { error, lb } = await whileActing((lb, clock) =>
      clock.runUntil(ready(lb, web1, { clock })),
    )
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(lb.state(web1)).toBe('ready')
  })

  test('if one of several members is lost', async () => {
    const { clock, lb } = balancer({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    const caught = thrown(
      drain(lb, [web1, web2], { clock }, (_, { signal }) => {
        clock.setTimeout(() => void lb.occupy(web2), 500)
        return work(clock, 10_000, signal)
      }),
    )
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'IDLE_LOST', ref: web2 })
  })

  test('only after the action has ended', async () => {
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
  test('fire for a forgotten hold put back without any work seen', async () => {
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

  test('fire for a put-back that is refused once for now', async () => {
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

  test('discard the result of an action that goes on regardless', async () => {
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

describe('an abort by the caller while the action works', () => {
  const stopped = new Error('stopped by Ctrl-C')

  async function interrupted(
    action: (signal: AbortSignal, clock: FakeClock) => Promise<string>,
    policy: Policy = {},
  ) {
    const { clock, lb } = balancer({ latency: 0 })
    const stop = new AbortController()
    const options = { clock, timeout: '1m', signal: stop.signal, ...policy } as const
    const run = drain(lb, web1, options, (_, { signal }) => {
      clock.setTimeout(() => stop.abort(stopped), 500)
      return action(signal, clock)
    })
    const ended = run.then(
      (value) => ({ value, error: undefined }),
      (error: unknown) => ({ value: undefined, error }),
    )
    return { ...(await clock.runUntil(ended)), lb }
  }

  test('reaches the action, with the reason', async () => {
    const { error } = await interrupted((signal, clock) => work(clock, 10_000, signal))
    expect(error).toBe(stopped)
  })

  test('rejects with the reason even if an API wrapped it', async () => {
    const { error } = await interrupted((signal, clock) =>
      work(clock, 10_000, signal).catch((cause: unknown) => {
        throw new Error('The operation was aborted', { cause })
      }),
    )
    expect(error).toBe(stopped)
  })

  test('leaves the member drained, whatever onAbort says', async () => {
    const half = (signal: AbortSignal, clock: FakeClock) => work(clock, 10_000, signal)
    const { lb } = await interrupted(half, { onAbort: 'restore' })
    expect(lb.state(web1)).toBe('maint')
  })

  test('gives the value of an action that ends all the same', async () => {
    const { value } = await interrupted((_, clock) =>
      work(clock, 1_000, new AbortController().signal),
    )
    expect(value).toBe('done')
  })

  test('puts the member back if the action has not begun', async () => {
    const { clock, lb } = balancer({ latency: 0 })
    const stop = new AbortController()
    const options: Policy = {
      clock,
      signal: stop.signal,
      onAbort: 'restore',
      onEvent: (event) => {
        if (event.type === 'end') stop.abort(stopped)
      },
    }
    let acted = false
    const run = drain(lb, web1, options, () => {
      acted = true
      return Promise.resolve()
    })
    expect(await clock.runUntil(run.catch((error: unknown) => error))).toBe(stopped)
    expect([acted, lb.state(web1)]).toEqual([false, 'ready'])
  })
})
