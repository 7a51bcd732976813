import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { carryOut, plan, startDrain, startRoll } from 'drainable'
import type { AdminState, Policy, RollOptions } from 'drainable'
import { formatPlan } from 'drainable/endpoints'
import { callContext, type DrainableProvider } from 'drainable/provider'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { jsonStore, setUp as setUpTwo } from '../combined/set-up.js'
import { thrown } from '../core/set-up.js'
import { setUp, web } from '../roll/set-up.js'

const web1 = { pool: 'web', member: 'web1' }

function applies(lb: FakeProvider): number {
  return lb.requests.filter(({ verb }) => verb === 'apply').length
}

describe('a plan of a drain', () => {
  test('says for each member what is held and what it waits for', async () => {
    const { clock, lb } = setUp(3)
    lb.occupy(web1, 3)
    const found = await clock.runUntil(plan(lb, web1, { clock, timeout: '2m' }))
    expect(found.kind).toBe('drain')
    expect(found.refused).toEqual([])
    expect(found.held).toEqual([])
    expect(found.changes).toMatchObject([{ kind: 'hold', ref: web1, to: 'drain' }])
    expect(found.steps[0]?.reason).toMatch(
      /^3 requests in flight; idle after 1(\.\d)? s without work; then in maint; fails and stays drained after 2 m$/,
    )
    expect(found.expected).toEqual({ least: expect.any(Number) as number, most: 120_000 })
    expect(found.text).toBe(formatPlan(found))
    expect(found.text).toMatch(/^1 change, 0 left alone\n {2}hold in drain {2}web\/web1 {2}3 req/)
    expect(found.text).toMatch(/note: idle is expected after .* at least, 2 m at most$/)
    expect(applies(lb)).toBe(0)
    expect(lb.state(web1)).toBe('ready')
  })

  test('says what the balancer tells of itself and of the member', async () => {
    const { clock, lb } = setUp(3)
    const info = await lb.describe(callContext())
    const told: DrainableProvider = Object.assign(Object.create(lb) as FakeProvider, {
      describe: () => Promise.resolve({ ...info, hints: ['a reload opens it'] }),
      observe: async (...args: Parameters<FakeProvider['observe']>) => {
        const seen = await lb.observe(...args)
        return {
          ...seen,
          readings: seen.readings.map((one) => ({ ...one, hints: ['it tracks a/b'] })),
        }
      },
    })
    const { notes } = await clock.runUntil(plan(told, web1, { clock }))
    expect(notes?.slice(0, 2)).toEqual(['a reload opens it', 'web/web1: it tracks a/b'])
  })

  test('says when a member is raised, cut and removed', async () => {
    const { clock, lb } = setUp(3)
    const policy = {
      clock,
      escalateAfter: '10s',
      onTimeout: 'terminate',
      until: 'removed',
    } as const
    const { steps } = await clock.runUntil(plan(lb, web1, policy))
    expect(steps[0]?.reason).toContain(
      'in maint after 10 s; then in maint; then taken out of its pool',
    )
    expect(steps[0]?.reason).toContain('what is left is cut after 30 s')
  })

  test('leaves alone what is drained already, and says so', async () => {
    const { clock, lb } = setUp(3)
    lb.setBehind(web1, 'maint')
    const { steps, held, refused } = await clock.runUntil(plan(lb, web, { clock, keepReady: 0 }))
    expect(refused).toEqual([])
    expect(steps.map(({ change }) => change.ref.member)).toEqual(['web2', 'web3'])
    expect(held).toMatchObject([
      { ref: web1, reason: expect.stringMatching(/^in maint already/) as unknown, asWished: true },
    ])
  })

  test('reports all obstacles at once, and plans nothing', async () => {
    const clock = fakeClock(1_000)
    const lb = fakeProvider({
      pools: { web: ['web1', 'web2'] },
      clock,
      capabilities: { ladder: ['ready', 'drain'], maint: 'none', remove: false, blind: 5_000 },
    })
    const policy = { clock, hold: 'maint', until: 'removed', timeout: '2s' } as const
    const { refused, steps, held, text } = await clock.runUntil(plan(lb, web, policy))
    expect(refused.map(({ code }) => code)).toEqual([
      'INVALID_OPTIONS',
      'UNSUPPORTED',
      'POOL_AT_MINIMUM',
    ])
    expect(steps).toEqual([])
    expect(held.map(({ ref }) => ref.member)).toEqual(['web1', 'web2'])
    expect(text).toMatch(/note: refused with INVALID_OPTIONS: plan\(\): timeout is 2 s, expected/)
    expect(text).toMatch(/note: refused with UNSUPPORTED: plan\(\): hold: 'maint': this balancer/)
    expect(applies(lb)).toBe(0)
  })

  test('names the part that the policy goes on without', async () => {
    const clock = fakeClock(1_000)
    const lb = fakeProvider({
      pools: { web: ['web1', 'web2'] },
      clock,
      capabilities: { ladder: ['ready', 'drain'], maint: 'none', remove: false },
    })
    const policy = { clock, hold: 'maint', until: 'removed', ifUnsupported: 'proceed' } as const
    const { refused, notes, changes } = await clock.runUntil(plan(lb, web1, policy))
    expect(refused).toEqual([])
    expect(changes).toMatchObject([{ kind: 'hold', to: 'drain' }])
    expect(notes).toContainEqual(
      expect.stringMatching(/^left out: hold: 'maint': .* use drain$/) as unknown,
    )
    expect(notes).toContainEqual(
      expect.stringMatching(/^left out: until: 'removed': this balancer/) as unknown,
    )
  })

  test('counts what other calls of this process hold, and waits if it may', async () => {
    const { clock, lb } = setUp(2)
    await using other = startDrain(lb, web1, { clock })
    await clock.runUntil(other.done)
    const web2 = { pool: 'web', member: 'web2' }
    const { refused } = await clock.runUntil(plan(lb, web2, { clock }))
    expect(refused).toMatchObject([{ code: 'POOL_AT_MINIMUM', ref: web2 }])
    const waiting = await clock.runUntil(plan(lb, web2, { clock, onMinimum: 'wait' }))
    expect(waiting.refused).toEqual([])
    expect(waiting.steps).toEqual([])
    expect(waiting.text).toContain(
      'note: waits until enough others serve: web/web2 was not drained',
    )
    // A plan itself wishes nothing down.
    await clock.runUntil(other.restore())
    expect((await clock.runUntil(plan(lb, web2, { clock }))).refused).toEqual([])
  })

  test('names a ticket of the same id whose undo would be lost', async () => {
    const { clock, lb } = setUp(3)
    const tickets = jsonStore()
    const run = startDrain(lb, web1, { clock, tickets, id: 'job' })
    await clock.runUntil(run.done)
    await clock.runUntil(run.release())
    const before = new Map(tickets.map)
    const other = { pool: 'web', member: 'web2' }
    const { refused } = await clock.runUntil(plan(lb, other, { clock, tickets, id: 'job' }))
    expect(refused).toMatchObject([
      {
        code: 'TICKET_INVALID',
        message: expect.stringMatching(/still holds web\/web1/) as unknown,
      },
    ])
    expect(tickets.map).toEqual(before)
  })

  test('is carried out as it is', async () => {
    const { clock, lb } = setUp(3)
    const found = await clock.runUntil(plan(lb, web1, { clock }))
    const { steps } = await clock.runUntil(carryOut(lb, found, { clock }))
    expect(steps).toMatchObject([{ outcome: 'done', report: { outcome: 'idle' } }])
  })

  test('reads as one plan over several balancers, and is refused as one', async () => {
    const { clock, a, b, all } = setUpTwo({}, { b: { pools: { web: ['web1'] } } })
    const refs = ['a', 'b'].map((balancer) => ({ ...web1, balancer }))
    const short = await clock.runUntil(plan(all, refs, { clock }))
    expect(short.refused).toMatchObject([{ code: 'POOL_AT_MINIMUM', ref: refs[1] }])
    expect(short.held.map(({ ref, reason }) => [ref.balancer, reason])).toEqual([
      ['a', expect.stringMatching(/^not begun: b: web\/web1 was not drained/) as unknown],
      ['b', expect.stringMatching(/^b: web\/web1 was not drained/) as unknown],
    ])
    const { changes } = await clock.runUntil(plan(all, refs, { clock, keepReady: 0 }))
    expect(changes.map(({ ref }) => ref)).toEqual(refs)
    expect(applies(a) + applies(b)).toBe(0)
  })

  test('waits for an unreadable balancer if the drain would', async () => {
    const { clock, b, all } = setUpTwo()
    b.disconnect()
    const refs = ['a', 'b'].map((balancer) => ({ ...web1, balancer }))
    const wait = { clock, onUnreachable: 'wait' } as const
    const found = await clock.runUntil(plan(all, refs, wait))
    expect(found.refused).toEqual([])
    expect(found.changes.map(({ ref }) => ref)).toEqual([refs[0]])
    expect(found.text).toMatch(/note: not read now, the drain waits for it: b: /)
    const strict = setUpTwo()
    strict.b.disconnect()
    const error = await thrown(
      strict.clock.runUntil(plan(strict.all, refs, { clock: strict.clock })),
    )
    expect(error).toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringMatching(/^b: /) as unknown,
    })
  })

  test('reads the ticket of a drain over several balancers', async () => {
    const { clock, all } = setUpTwo()
    const tickets = jsonStore()
    const job = { clock, tickets, id: 'job' }
    const run = startDrain(all, { ...web1, balancer: 'a' }, job)
    await clock.runUntil(run.done)
    await clock.runUntil(run.release())
    const same = await clock.runUntil(plan(all, { ...web1, balancer: 'a' }, job))
    expect(same.refused).toEqual([])
    const other = await clock.runUntil(plan(all, { ...web1, balancer: 'b' }, job))
    expect(other.refused).toMatchObject([{ code: 'TICKET_INVALID' }])
  })

  test('refuses bad input and a missing target by name', async () => {
    const { clock, lb } = setUp(2)
    const wrong: [object, object, RegExp][] = [
      [web1, { timeout: 30 }, /^plan\(\): timeout is 30/],
      [web1, { tiemout: '30s' }, /unknown option 'tiemout'/],
      [{ pol: 'web' }, {}, /^plan\(\): target: /],
      [[], { maxUnavailable: 1 }, /target: expected at least one/],
      [web1, { maxUnavailable: '0%' }, /maxUnavailable: /],
      [web, { canary: 3 }, /canary: the roll has 2 servers/],
    ]
    for (const [target, options, words] of wrong) {
      const error = await thrown(clock.runUntil(plan(lb, target as never, { clock, ...options })))
      expect(error).toMatchObject({ code: 'INVALID_OPTIONS', message: words })
    }
    const none = await thrown(clock.runUntil(plan(lb, { address: '10.9.9.9' }, { clock })))
    expect(none).toMatchObject({ code: 'NOT_FOUND' })
    const signal = AbortSignal.abort(new Error('given up'))
    expect(await thrown(plan(lb, web1, { signal }))).toBe(signal.reason)
  })

  test('predicts whether and how a drain begins', async () => {
    const policies = fc.record(
      {
        keepReady: fc.nat(3),
        hold: fc.constantFrom<('drain' | 'maint')[]>('drain', 'maint'),
        until: fc.constantFrom<('idle' | 'removed')[]>('idle', 'removed'),
        onTimeout: fc.constantFrom('fail', 'terminate', 'proceed'),
        ifUnsupported: fc.constantFrom('fail', 'proceed'),
        seal: fc.boolean(),
        timeout: fc.constantFrom('1s', '30s'),
        escalateAfter: fc.constantFrom('500ms'),
      },
      { requiredKeys: [] },
    )
    const capabilities = fc.record(
      {
        ladder: fc.constantFrom<AdminState[][]>(['ready', 'drain'], ['ready', 'drain', 'maint']),
        maint: fc.constantFrom('gentle', 'cuts', 'unknown'),
        terminate: fc.boolean(),
        remove: fc.boolean(),
        blind: fc.constantFrom(0, 1_100, 5_000),
      },
      { requiredKeys: [] },
    )
    const states = fc.array(fc.constantFrom<AdminState[]>('ready', 'drain', 'maint'), {
      minLength: 1,
      maxLength: 4,
    })
    const taken = fc.array(fc.nat(3), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(policies, capabilities, states, taken, async (policy, can, own, which) => {
        const clock = fakeClock(1_000)
        const names = own.map((_, n) => `web${n + 1}`)
        const ladder: readonly AdminState[] = can.ladder ?? ['ready', 'drain', 'maint']
        const maint = ladder.includes('maint') ? (can.maint ?? 'gentle') : 'none'
        const lb = fakeProvider({
          pools: { web: names },
          clock,
          capabilities: { ...can, ladder, maint } as never,
        })
        for (const [n, state] of own.entries()) {
          if (ladder.includes(state)) lb.setBehind({ pool: 'web', member: names[n]! }, state)
        }
        const refs = [...new Set(which.map((n) => names[n % names.length]!))].map((member) => ({
          pool: 'web',
          member,
        }))
        const options: Policy = { ...policy, clock }
        const found = await clock.runUntil(plan(lb, refs, options))
        expect(applies(lb)).toBe(0)
        const run = startDrain(lb, refs, options)
        const report = await clock.runUntil(run.done)
        const held = lb.requests.flatMap((request) =>
          request.verb === 'apply' ? (request.changes ?? []) : [],
        )
        await run.close()
        if (report.outcome === 'refused' && held.length === 0) {
          expect(found.refused.map(({ code }) => code)).toContain(report.error?.code)
          expect(found.steps).toEqual([])
          return
        }
        expect(found.refused).toEqual([])
        const first = new Map(
          held.map((change) => [change.ref.member, change] as const).toReversed(),
        )
        for (const { change } of found.steps) {
          const { kind, ref } = change
          expect(first.get(ref.member)).toMatchObject({ kind, to: 'to' in change && change.to })
        }
        const planned = found.steps.map(({ change }) => change.ref.member)
        const ready = refs.filter(({ member }) => own[names.indexOf(member)] === 'ready')
        expect(planned).toEqual(expect.arrayContaining(ready.map(({ member }) => member)))
      }),
      { numRuns: 150 },
    )
  })
})

describe('a plan of a roll', () => {
  test('names the servers in order, with canaries and batches', async () => {
    const { clock, lb } = setUp(5)
    const options = { clock, canary: 1, maxUnavailable: 2, timeout: '1m' } as const
    const found = await clock.runUntil(plan(lb, web, options))
    expect(found.kind).toBe('roll')
    expect(found.steps.map(({ reason }) => reason.split(';')[0])).toEqual([
      'server 1 of 5, canary',
      ...[2, 3, 4, 5].map((n) => `server ${n} of 5`),
    ])
    expect(found.expected.most).toBe(3 * 60_000)
    expect(found.text).toContain(
      'note: 5 servers in 3 batches, 2 at once, 1 first; after its drain each is acted on, made ready and seen healthy',
    )
    expect(applies(lb)).toBe(0)
  })

  test('asks the floor for each server separately', async () => {
    const { clock, lb } = setUp(3)
    const fits = await clock.runUntil(plan(lb, web, { clock, keepReady: 2, maxUnavailable: 1 }))
    expect(fits.steps).toHaveLength(3)
    const short = await clock.runUntil(plan(lb, web, { clock, keepReady: 3, maxUnavailable: 1 }))
    expect(short.steps).toEqual([])
    expect(short.held).toHaveLength(3)
    expect(short.held[0]?.reason).toMatch(/^server 1 of 3; web\/web1 was not drained: 2 of 3/)
  })

  test('counts one address on two balancers as one server', async () => {
    const { clock, all } = setUpTwo()
    const both = ['a', 'b'].map((balancer) => ({ pool: 'web', balancer }))
    const { steps, kind } = await clock.runUntil(plan(all, both, { clock }))
    expect(kind).toBe('roll') // a list of pools can't be a drain
    expect(steps.map(({ change, reason }) => [change.ref.balancer, reason.split(';')[0]])).toEqual([
      ['a', 'server 1 of 3'],
      ['b', 'server 1 of 3'],
      ['a', 'server 2 of 3'],
      ['b', 'server 2 of 3'],
      ['a', 'server 3 of 3'],
      ['b', 'server 3 of 3'],
    ])
  })

  test('says that health is not checked, and names a ticket in the way', async () => {
    const { clock, lb, refs } = setUp(3)
    for (const ref of refs) lb.setHealth(ref, 'unchecked')
    const tickets = jsonStore()
    const act = (): Promise<void> => Promise.reject(new Error('exit 1'))
    const job = { clock, tickets, id: 'job', waitHealthy: false } as const
    await clock.runUntil(startRoll(lb, web, { ...job, act }).done)
    const options: Omit<RollOptions, 'act'> = { ...job, waitHealthy: true }
    const { refused, steps, text } = await clock.runUntil(plan(lb, web, options))
    expect(refused.map(({ code }) => code)).toEqual(['TICKET_INVALID', 'INVALID_OPTIONS'])
    expect(steps).toEqual([])
    expect(text).toContain(
      "note: refused with TICKET_INVALID: plan(): ticket 'job' belongs to a roll",
    )
  })

  test('says once why the whole roll is refused', async () => {
    const clock = fakeClock(1_000)
    const pools = { web: ['web1', 'web2', 'web3'], api: ['api1'] }
    const lb = fakeProvider({ pools, clock })
    lb.setHealth({ pool: 'api', member: 'api1' }, 'unchecked')
    const target = [{ pool: 'web' }, { pool: 'api' }]
    const { held, text } = await clock.runUntil(plan(lb, target, { clock, keepReady: 0 }))
    expect(held.map(({ reason }) => reason)).toEqual(
      [1, 2, 3, 4].map(
        (n) => `server ${n} of 4; not begun: the roll is refused with INVALID_OPTIONS`,
      ),
    )
    expect(text.match(/no balancer checks api\/api1/g)).toHaveLength(1)
  })

  test.each([
    [1, '; 1 member already out stays out, the others are made ready and seen healthy'],
    [2, '; 2 members already out stay out, the others are made ready and seen healthy'],
    [3, ' and left out, as it was found'],
  ])('does not say that members already out are made ready (%i of 3)', async (out, words) => {
    const { clock, lb, refs } = setUp(3)
    for (const ref of refs.slice(0, out)) lb.setBehind(ref, 'maint')
    const { notes } = await clock.runUntil(
      plan(lb, web, { clock, maxUnavailable: 1, keepReady: 0 }),
    )
    expect(notes?.[0]).toBe(
      `3 servers in 3 batches, 1 at once; after its drain each is acted on${words}`,
    )
  })

  test('is not carried out all at once', async () => {
    const { clock, lb } = setUp(3)
    const found = await clock.runUntil(plan(lb, web, { clock, maxUnavailable: 1 }))
    const error = await thrown(carryOut(lb, found, { clock }))
    expect(error).toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/roll\(\) carries it out/) as unknown,
    })
    expect(applies(lb)).toBe(0)
  })
})
