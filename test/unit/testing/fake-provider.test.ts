import { describe, expect, test, vi } from 'vitest'
import { isDrainableError } from 'drainable/provider'
import type { ChangeResult, MemberRef, Reading } from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
import type { FakeProvider } from 'drainable/testing'

const web1: MemberRef = { pool: 'web', member: 'web1' }
const web2: MemberRef = { pool: 'web', member: 'web2' }

function setup(options: Partial<Parameters<typeof fakeProvider>[0]> = {}) {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock, ...options })
  const ctx = { clock, signal: new AbortController().signal }
  return { clock, lb, ctx }
}

async function read(lb: FakeProvider, ref: MemberRef): Promise<Reading> {
  const { readings } = await lb.observe([ref], setup().ctx)
  return readings[0]!
}

describe('fakeProvider', () => {
  test.each<[object | undefined, string]>([
    [undefined, "pools: expected member names by pool, such as { web: ['web1', 'web2'] }"],
    [{}, 'pools: expected member names by pool'],
    [{ pool: { web: ['web1'] } }, "unknown option 'pool', did you mean 'pools'?"],
    [{ pools: {}, latency: '5ms' }, "latency: expected milliseconds, 0 or more, found '5ms'"],
    [{ pools: {}, whenNone: 'drop' }, "whenNone: expected one of 'refuse', 'spill'"],
    [{ pools: {}, clock: {} }, 'clock: expected a clock with now() and setTimeout()'],
    [{ pools: {}, scopes: 'worker' }, "scopes: expected a list of names, such as ['worker']"],
    [
      { pools: {}, capabilities: { maint: 'soft' } },
      "capabilities.maint: expected one of 'gentle'",
    ],
    [{ pools: {}, capabilities: { blindness: 3 } }, "capabilities: unknown option 'blindness'"],
  ])('refuses %j', (options, words) => {
    expect(() => fakeProvider(options as never)).toThrow(`fakeProvider(): ${words}`)
  })

  test('refuses a getter that throws, with its words', () => {
    const options = {
      get pools(): never {
        throw new Error('no pools yet')
      },
    }
    const words = "fakeProvider(): its getter threw 'no pools yet'"
    expect(() => fakeProvider(options)).toThrow(words)
  })

  test.each<[string, (lb: FakeProvider) => unknown, string]>([
    ['setBehind()', (lb) => lb.setBehind(web1, 'down' as never), "found 'down'"],
    ['setHealth()', (lb) => lb.setHealth(web1, 'ok' as never), "expected one of 'up', 'down'"],
    ['failNext()', (lb) => lb.failNext('trow' as never), "expected one of 'throw', 'throw-after'"],
    ['occupy()', (lb) => lb.occupy(web1, -1), 'expected a whole number of requests from 0'],
    ['queue()', (lb) => lb.queue(web1, NaN), 'found NaN'],
    ['arrive()', (lb) => lb.arrive(web1, '2' as never), "found '2'"],
  ])('%s refuses a word or number that would do nothing', (name, call, words) => {
    const { lb } = setup()
    expect(() => call(lb)).toThrow(name)
    expect(() => call(lb)).toThrow(words)
  })

  test('makes no signal for a call that waits for nothing', async () => {
    const { lb } = setup()
    const combined = vi.spyOn(AbortSignal, 'any')
    await read(lb, web1)
    expect(combined).not.toHaveBeenCalled()
    combined.mockRestore()
  })

  test('refuses work for an unknown member, not for one that is gone', () => {
    const { lb } = setup()
    expect(() => lb.occupy({ pool: 'web', member: 'web3' })).toThrow('no member web/web3')
    lb.setBehind(web1, 'gone')
    expect(() => lb.occupy(web1)).not.toThrow()
  })

  test('holds work on any of its processes, and counts its arrivals', async () => {
    const { lb } = setup({ scopes: ['a', 'b'] })
    const end = lb.occupy(web1, 2, 'b')
    const away = lb.queue(web1, 3, 'a')
    lb.arrive(web1, 5, 'a')
    const { scopes } = await read(lb, web1)
    expect(scopes.map((s) => [s.scope, s.active, s.queued, s.arrivals])).toEqual([
      ['a', 0, 3, 5],
      ['b', 2, 0, 2],
    ])
    end()
    end()
    away()
    expect(lb.load(web1)).toBe(0)
    expect(() => lb.occupy(web1, 1, 'c')).toThrow('no process c')
  })

  test('keeps work through a reload in an old process, until it ends', async () => {
    const { lb, ctx } = setup()
    await lb.apply([{ kind: 'hold', ref: web1, to: 'drain' }], ctx)
    const end = lb.occupy(web1)
    lb.reload()
    const reading = await read(lb, web1)
    expect(reading.present && reading.own).toBe('ready')
    expect(reading.scopes).toMatchObject([
      { scope: 'worker', incarnation: '2', active: 0, arrivals: 0 },
      {
        scope: 'worker-old-1',
        incarnation: '1',
        active: 1,
        old: true,
        admin: 'drain',
        open: false,
      },
    ])
    end()
    const { scopes } = await read(lb, web1)
    expect(scopes[1]).toMatchObject({ state: 'ended', active: 0 })
  })

  test('never takes the drain in an old process that was replaced as ready', async () => {
    const { lb, ctx } = setup()
    lb.occupy(web1)
    lb.reload()
    await lb.apply([{ kind: 'hold', ref: web1, to: 'drain' }], ctx)
    const { scopes } = await read(lb, web1)
    expect(scopes.map(({ admin }) => admin)).toEqual(['drain', 'ready'])
  })

  test('leaves no old process after a reload that cuts', async () => {
    const { lb } = setup()
    const end = lb.occupy(web1)
    lb.reload({ cut: true })
    expect((await read(lb, web1)).scopes).toHaveLength(1)
    expect(lb.load(web1)).toBe(0)
    end()
  })

  test('lists a process that was left out as ended', async () => {
    const { lb } = setup({ scopes: ['a', 'b'] })
    lb.setScopes(['b', { scope: 'c', state: 'unread', note: 'no route' }])
    const { scopes } = await read(lb, web1)
    expect(scopes.map((s) => [s.scope, s.state, s.note])).toEqual([
      ['b', 'read', undefined],
      ['c', 'unread', 'no route'],
      ['a', 'ended', undefined],
    ])
  })

  test('lists its processes for a member that is gone', async () => {
    const { lb } = setup()
    lb.occupy(web1)
    lb.setBehind(web1, 'gone')
    lb.setBehind(web2, 'gone')
    expect(await read(lb, web1)).toMatchObject({ present: false, scopes: [{ active: 1 }] })
    expect(await read(lb, web2)).toMatchObject({ present: false, scopes: [{ active: 0 }] })
    lb.setBehind(web1, 'drain')
    expect(lb.state(web1)).toBe('drain')
  })

  test('fails as told: before, after, never, as a refusal, as unknown', async () => {
    const { lb, ctx } = setup()
    const hold = [{ kind: 'hold', ref: web1, to: 'drain' }] as const
    lb.failNext('throw')
    await expect(lb.apply(hold, ctx)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    expect(lb.state(web1)).toBe('ready')
    lb.failNext('reject', { times: 2 })
    for (let i = 0; i < 2; i++) {
      expect(await lb.apply(hold, ctx)).toMatchObject([{ status: 'rejected' }])
    }
    expect(lb.state(web1)).toBe('ready')
    lb.failNext('unknown')
    expect(await lb.apply(hold, ctx)).toMatchObject([{ status: 'unknown' }])
    expect(lb.state(web1)).toBe('drain')
    lb.failNext('throw-after', { verb: 'apply' })
    await lb.observe('all', ctx)
    const remove = lb.apply([{ kind: 'remove', ref: web1 }], ctx)
    await expect(remove).rejects.toSatisfy((e) => isDrainableError(e, 'CONNECTION_LOST'))
    expect(lb.state(web1)).toBe('gone')
  })

  test('hangs until the caller gives up, and may carry out the call later', async () => {
    const { clock, lb, ctx } = setup()
    const controller = new AbortController()
    lb.failNext('hang-after', { verb: 'apply', late: 500 })
    const hold = { kind: 'hold', ref: web1, to: 'drain' } as const
    const call = lb.apply([hold], { ...ctx, signal: controller.signal })
    const ended = expect(call).rejects.toBe('enough')
    await clock.advance(100)
    controller.abort('enough')
    await ended
    expect(lb.state(web1)).toBe('ready')
    await clock.advance(400)
    expect(lb.state(web1)).toBe('drain')
    expect(clock.pending).toBe(0)
  })

  test.each([
    [{ kind: 'hold', ref: web1, to: 'drain', identity: 'another' }, 'CONFLICT'],
    [{ kind: 'restore', ref: web1, expect: 'drain', to: 'maint' }, 'CONFLICT'],
    [{ kind: 'hold', ref: { pool: 'web', member: 'web9' }, to: 'drain' }, 'NOT_FOUND'],
    [{ kind: 'add', ref: web1, address: '192.0.2.99', port: 80 }, 'CONFLICT'],
  ] as const)('refuses for reasons that may pass: %j', async (change, code) => {
    const { lb, ctx } = setup()
    const [result] = await lb.apply([change], ctx)
    expect(result).toMatchObject({ status: 'rejected', error: { code, retryable: false } })
  })

  describe('hands up results', () => {
    const holds = [web1, web2].map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const)

    function handing(options: Parameters<typeof setup>[0] = {}) {
      const it = setup(options)
      const handed: [index: number, status: string][] = []
      const result = (index: number, { status }: ChangeResult) => handed.push([index, status])
      return { ...it, handed, ctx: { ...it.ctx, result } }
    }

    test.each([
      [undefined, 'applied'],
      ['reject', 'rejected'],
      ['unknown', 'unknown'],
    ] as const)('of each change as it is answered (%s)', async (how, status) => {
      const { lb, ctx, handed } = handing()
      if (how !== undefined) lb.failNext(how)
      const results = await lb.apply(holds, ctx)
      expect(results.map((result) => result.status)).toEqual([status, status])
      expect(handed).toEqual([
        [0, status],
        [1, status],
      ])
    })

    test('of no change whose answer is lost, unless it is told to', async () => {
      const { lb, ctx, handed } = handing()
      lb.failNext('throw-after')
      await expect(lb.apply(holds, ctx)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
      expect(handed).toEqual([])
      expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'drain'])
    })

    test('of the first changes of a call that throws in the middle', async () => {
      const { lb, ctx, handed } = handing()
      lb.failNext('throw', { handedUp: 1 })
      await expect(lb.apply(holds, ctx)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
      expect(handed).toEqual([[0, 'applied']])
      expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
    })

    test('of the first changes of a call that hangs, and does the rest late', async () => {
      const { lb, ctx, clock, handed } = handing()
      const controller = new AbortController()
      lb.failNext('hang-after', { handedUp: 1, late: 500 })
      const ended = expect(lb.apply(holds, { ...ctx, signal: controller.signal })).rejects.toBe(
        'enough',
      )
      expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
      controller.abort('enough')
      await ended
      await clock.advance(500)
      expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'drain'])
      expect(handed).toEqual([[0, 'applied']])
    })
  })

  test('takes its latency from the fake clock, and leaves no timer', async () => {
    const { clock, lb, ctx } = setup({ latency: 250 })
    await clock.runUntil(lb.observe('all', ctx))
    expect(clock.now()).toBe(250)
    const controller = new AbortController()
    const call = lb.observe('all', { ...ctx, signal: controller.signal })
    controller.abort('stop')
    await expect(call).rejects.toBe('stop')
    expect(clock.pending).toBe(0)
  })

  test('keeps a log of the requests', async () => {
    const { lb, ctx } = setup()
    await lb.describe(ctx)
    await lb.observe([web1], ctx)
    await lb.apply([{ kind: 'terminate', ref: web2 }], ctx)
    expect(lb.requests.map((r) => r.verb)).toEqual(['describe', 'observe', 'apply'])
    expect(lb.requests[1]).toMatchObject({ refs: [web1], at: 0 })
  })

  test('reads what the parent imposes and what the checks say', async () => {
    const { lb } = setup()
    lb.setInherited(web1, 'drain')
    lb.setHealth(web2, 'down')
    lb.setIdentity(web2, 'another')
    expect(await read(lb, web1)).toMatchObject({ own: 'ready', inherited: 'drain', serves: false })
    expect(await read(lb, web2)).toMatchObject({ health: 'down', serves: false })
    const { pools } = await lb.observe('all', setup().ctx)
    expect(pools).toEqual([{ pool: 'web', serving: 0, total: 2, whenNone: 'refuse' }])
    lb.setInherited(web1, undefined)
    expect(await read(lb, web1)).toMatchObject({ serves: true })
    expect(() => lb.setHealth({ pool: 'web', member: 'x' }, 'up')).toThrow('web/x')
  })

  test('can be cut off and connected again', async () => {
    const { lb, ctx } = setup()
    lb.disconnect()
    await expect(lb.observe('all', ctx)).rejects.toMatchObject({ code: 'UNREACHABLE' })
    lb.connect()
    expect((await lb.observe('all', ctx)).readings).toHaveLength(2)
    await lb.close()
    await expect(lb.observe('all', ctx)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })

  test('refuses a member that is given as text', () => {
    const { lb } = setup()
    const asText = 'web1' as unknown as typeof web1
    const words = "expected a member such as { pool: 'web', member: 'web1' }, found \"web1\""
    expect(() => lb.occupy(asText)).toThrow(words)
    expect(() => lb.setBehind(asText, 'drain')).toThrow(words)
    expect(() => lb.setHealth(asText, 'down')).toThrow(words)
  })

  test('names its members for a misspelt one', () => {
    const { lb } = setup()
    expect(() => lb.occupy({ pool: 'web', member: 'wbe1' })).toThrow(
      "has no member web/wbe1, it has 'web/web1', 'web/web2'",
    )
  })

  test('refuses pools whose members are not lists of names', () => {
    const pools = { web: 'web1' } as unknown as Record<string, string[]>
    expect(() => fakeProvider({ pools })).toThrow(
      "pools.web: expected a list of member names, such as ['web1', 'web2']",
    )
  })
})
