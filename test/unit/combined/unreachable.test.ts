import { describe, expect, test } from 'vitest'
import { drain, isDrainableError, resumeDrain, select, startDrain, watch } from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, setUp } from './set-up.js'

const both = [a1, b1]
const WAIT = { onUnreachable: 'wait', seal: false } as const

/** No look at it is answered. */
function hang(lb: FakeProvider): void {
  lb.failNext('hang', { verb: 'describe', times: 10_000 })
  lb.failNext('hang', { verb: 'observe', times: 10_000 })
}

async function dispose(run: AsyncDisposable): Promise<void> {
  await run[Symbol.asyncDispose]()
}

describe('a balancer that hangs from the start, waited for', () => {
  test('holds the others up for about a second', async () => {
    const { clock, a, b, all } = setUp()
    hang(b)
    await using run = startDrain(all, both, { clock, timeout: '60s', ...WAIT })
    await clock.advance(1_500)
    expect(a.state(bare)).toBe('drain')
    expect(run.why()[0]).toMatchObject({ code: 'unreadable', ref: b1 })
    await clock.runUntil(run.release())
  })

  test.each(['released', 'disposed of'] as const)(
    'is never part of an idle where the drain is %s before it has answered',
    async (how) => {
      const { clock, a, b, all } = setUp()
      hang(b)
      const run = startDrain(all, both, { clock, timeout: '60s', ...WAIT })
      await clock.advance(20_000)
      expect(a.state(bare)).toBe('drain')
      await clock.runUntil(how === 'released' ? run.release() : dispose(run))
      const { outcome, members } = await clock.runUntil(run.done)
      expect(outcome).toBe('aborted')
      expect(members.map(({ ref }) => ref)).toEqual([a1])
    },
  )

  test('is never a drain that changed nothing', async () => {
    const { clock, a, b, all } = setUp()
    hang(b)
    const error = await clock.runUntil(thrown(drain(all, both, { clock, timeout: '20s', ...WAIT })))
    expect(isDrainableError(error) && error.message).toMatch(
      /^b: .*before the deadline; held: a:web\/web1 in drain; nothing is held on b$/,
    )
    expect(a.state(bare)).toBe('drain')
  })

  test('has a row in the report, beside what is held', async () => {
    const { clock, b, all } = setUp()
    hang(b)
    await using run = startDrain(all, both, { clock, timeout: '20s', ...WAIT })
    const { outcome, members } = await clock.runUntil(run.done)
    expect(outcome).toBe('unreachable')
    expect(members.map(({ ref, outcome, held }) => [ref, outcome, held])).toEqual([
      [a1, 'idle', true],
      [b1, 'unreachable', false],
    ])
  })

  test("leaves the others their names where a name can't be looked for without it", async () => {
    const { clock, b, all } = setUp()
    hang(b)
    const target = [a1, { pool: 'web', member: 'web2' }]
    await using run = startDrain(all, target, { clock, timeout: '20s', ...WAIT })
    const { members } = await clock.runUntil(run.done)
    expect(members.map(({ ref }) => ref)).toEqual(target)
  })

  test('has a row without a name where only an address was given', async () => {
    const { clock, a, b, all } = setUp()
    hang(b)
    const [found] = await clock.runUntil(select(a, bare, { clock }))
    const target = { address: (found as { address: string }).address }
    await using run = startDrain(all, target, { clock, timeout: '20s', ...WAIT })
    const { members } = await clock.runUntil(run.done)
    expect(members.map(({ ref }) => ref)).toEqual([a1, { pool: '*', member: '*', balancer: 'b' }])
  })

  test('is proceeded without under onTimeout proceed', async () => {
    const { clock, b, all } = setUp()
    hang(b)
    const policy = { clock, timeout: '20s', onTimeout: 'proceed', ...WAIT } as const
    const rows = await clock.runUntil(
      drain(all, both, policy, (report) =>
        Promise.resolve(report.members.map(({ ref, outcome }) => [ref.balancer, outcome])),
      ),
    )
    expect(rows).toEqual([
      ['a', 'idle'],
      ['b', 'proceeded'],
    ])
  })
})

describe('a balancer that hangs from the start, not waited for', () => {
  test('is never proceeded without, nor begun without, under onTimeout proceed', async () => {
    const { clock, a, b, all } = setUp()
    hang(b)
    const acted: string[] = []
    const call = drain(all, both, { clock, timeout: '8s', onTimeout: 'proceed' }, async () => {
      acted.push('act')
    })
    const error = await clock.runUntil(thrown(call))
    expect(isDrainableError(error, 'CALL_TIMEOUT') && error.message).toMatch(/^b: /)
    expect([a.state(bare), acted]).toEqual(['ready', []])
  })
})

describe('a balancer that refuses after the others began', () => {
  /** `b` answers after 3 s, and has no member to spare. */
  function refusesLate(): ReturnType<typeof setUp> {
    const its = setUp()
    const { b, clock } = its
    for (const member of ['web2', 'web3']) b.setBehind({ pool: 'web', member }, 'maint')
    b.disconnect()
    clock.setTimeout(() => b.connect(), 3_000)
    return its
  }

  test('ends the drain as refused, and says what is held', async () => {
    const { clock, a, all } = refusesLate()
    a.occupy(bare)
    const from = clock.now()
    const error = await clock.runUntil(thrown(drain(all, both, { clock, timeout: '60s', ...WAIT })))
    expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM', report: { outcome: 'refused' } })
    expect(String(error)).toContain('; held: a:web/web1 in drain')
    expect(clock.now() - from).toBeLessThan(10_000)
    expect(a.state(bare)).toBe('drain')
  })

  test('has the others put back under onAbort restore', async () => {
    const { clock, a, all } = refusesLate()
    a.occupy(bare)
    const policy = { clock, timeout: '60s', onAbort: 'restore', ...WAIT } as const
    const error = await clock.runUntil(thrown(drain(all, both, policy)))
    expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
    expect(String(error)).not.toContain('held: a')
    expect(a.state(bare)).toBe('ready')
  })
})

test('a refusal before any began says that this drain changed nothing', async () => {
  const { clock, a, b, all } = setUp()
  for (const member of ['web2', 'web3']) b.setBehind({ pool: 'web', member }, 'maint')
  const error = await clock.runUntil(thrown(drain(all, both, { clock })))
  expect(String(error)).toMatch(/b: .*; this drain changed nothing on any balancer$/)
  expect(a.state(bare)).toBe('ready')
})

test('a timeout over several balancers says what is held on each', async () => {
  const { clock, a, all } = setUp()
  a.occupy(bare)
  const error = await clock.runUntil(
    thrown(drain(all, both, { clock, timeout: '5s', seal: false })),
  )
  expect(error).toMatchObject({ code: 'DRAIN_TIMEOUT' })
  expect(String(error)).toMatch(/; held: a:web\/web1 in drain, b:web\/web1 in drain$/)
})

describe('when all balancers are away', () => {
  test('the drain begins with those that come back', async () => {
    const { clock, a, b, all } = setUp()
    for (const lb of [a, b]) lb.disconnect()
    await using run = startDrain(all, both, { clock, timeout: '2m', ...WAIT })
    clock.setTimeout(() => [a, b].forEach((lb) => lb.connect()), 60_000)
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  })

  test('a drain under onTimeout proceed proceeds', async () => {
    const { clock, a, b, all } = setUp()
    for (const lb of [a, b]) lb.disconnect()
    const policy = { clock, timeout: '20s', onTimeout: 'proceed', ...WAIT } as const
    const report = await clock.runUntil(drain(all, both, policy))
    expect(report.members.map(({ ref, outcome, held }) => [ref, outcome, held])).toEqual([
      [a1, 'proceeded', false],
      [b1, 'proceeded', false],
    ])
  })

  test('a name without a balancer is looked for until one is back', async () => {
    const { clock, a, b, all } = setUp({}, { b: { pools: { api: ['api1', 'api2'] } } })
    for (const lb of [a, b]) lb.disconnect()
    await using run = startDrain(all, bare, { clock, timeout: '2m', ...WAIT })
    await clock.advance(5_000)
    expect(run.why().map(({ code, ref }) => [code, ref.balancer])).toEqual([
      ['unreadable', 'a'],
      ['unreadable', 'b'],
    ])
    for (const lb of [a, b]) lb.connect()
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    expect(run.why()).toEqual([])
  })

  test('a name without a balancer has a row at the deadline', async () => {
    const { clock, a, all } = setUp()
    a.disconnect()
    const policy = { clock, timeout: '20s', onTimeout: 'proceed', ...WAIT } as const
    const { outcome, members } = await clock.runUntil(drain(all, bare, policy))
    expect([outcome, members.map(({ ref }) => ref)]).toEqual(['proceeded', [bare]])
  })
})

describe('one balancer that is away, waited for', () => {
  function one(): { clock: ReturnType<typeof fakeClock>; lb: FakeProvider } {
    const clock = fakeClock(1_000)
    return { clock, lb: fakeProvider({ pools: { web: ['web1', 'web2'] }, clock }) }
  }

  test('is drained when it is back', async () => {
    const { clock, lb } = one()
    lb.disconnect()
    clock.setTimeout(() => lb.connect(), 50_000)
    const report = await clock.runUntil(drain(lb, bare, { clock, timeout: '60s', ...WAIT }))
    expect(report.outcome).toBe('idle')
  })

  test('is given up at the deadline, with nothing changed', async () => {
    const { clock, lb } = one()
    lb.disconnect()
    const from = clock.now()
    const error = await clock.runUntil(thrown(drain(lb, bare, { clock, timeout: '60s', ...WAIT })))
    expect(error).toMatchObject({ code: 'UNREACHABLE', ref: bare })
    expect(String(error)).toMatch(
      /could not be read before the deadline: .*, this drain changed nothing$/,
    )
    expect(clock.now() - from).toBe(60_000)
  })

  test('is proceeded without under onTimeout proceed', async () => {
    const { clock, lb } = one()
    lb.disconnect()
    const policy = { clock, timeout: '60s', onTimeout: 'proceed', ...WAIT } as const
    const { outcome, members } = await clock.runUntil(drain(lb, bare, policy))
    expect(outcome).toBe('proceeded')
    expect(members).toMatchObject([
      { ref: bare, outcome: 'proceeded', verifiedIdle: false, error: { code: 'UNREACHABLE' } },
    ])
  })

  test('is watched when it is back', async () => {
    const { clock, lb } = one()
    lb.disconnect()
    await using view = watch(lb, bare, { clock, onUnreachable: 'wait' })
    clock.setTimeout(() => lb.connect(), 50_000)
    await clock.advance(60_000)
    expect(view.report().members.map(({ ref }) => ref)).toEqual([bare])
  })

  test('keeps what the ticket of a resumed drain holds, and says so', async () => {
    const { clock, lb } = one()
    lb.occupy(bare)
    const first = startDrain(lb, bare, { clock, timeout: '60s' })
    await clock.advance(2_000)
    const ticket = await first.ticket
    await clock.runUntil(first.release())
    const away = fakeProvider({ pools: { web: ['web1'] }, clock, instance: lb.instance })
    hang(away)
    await using run = resumeDrain(away, ticket, { clock })
    const { outcome, error, members } = await clock.runUntil(run.done)
    expect(outcome).toBe('unreachable')
    expect(error?.message).toMatch(/what its ticket holds stays as it was left$/)
    expect(members).toMatchObject([{ ref: bare, held: true }])
  })
})
