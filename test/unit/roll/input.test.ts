import { describe, expect, test } from 'vitest'
import { isDrainableError, resumeRoll, roll, startRoll, type Roll } from 'drainable'
import { jsonStore } from '../combined/set-up.js'
import { thrown } from '../core/set-up.js'
import { actor, setUp, web } from './set-up.js'

const refused: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
  ['act that is none', { act: undefined }, /^startRoll\(\): act: expected a function/],
  ['percent 0', { maxUnavailable: '0%' }, /maxUnavailable: .*above 0%/],
  ['percent above 100', { maxUnavailable: '101%' }, /maxUnavailable: .*up to 100%/],
  ['a percent without its sign', { maxUnavailable: '10' }, /maxUnavailable: .*such as '10%'/],
  ['none at once', { maxUnavailable: 0 }, /maxUnavailable: /],
  ['half a server', { maxUnavailable: 1.5 }, /maxUnavailable: /],
  ['a negative canary', { canary: -1 }, /canary: /],
  ['another failure rule', { onFailure: 'ignore' }, /onFailure: expected 'stop', 'continue'/],
  ['another group', { group: 'pool' }, /group: expected 'address', 'ref' or a function/],
  ['bare seconds to be healthy', { waitHealthy: 30 }, /waitHealthy is 30.*did you mean '30s'/],
  ['no time to be healthy', { waitHealthy: 0 }, /waitHealthy is 0, .* or waitHealthy: false/],
  ['bare seconds to drain', { timeout: 30 }, /timeout is 30.*did you mean '30s'/],
  [
    'a removal without its end',
    { onTimeout: 'remove' },
    /onTimeout: 'remove' .*add until: 'removed'/,
  ],
  [
    'to leave a busy server in',
    { until: 'removed', onTimeout: 'proceed' },
    /'remove' or 'terminate'/,
  ],
  [
    'to go on without a removal',
    { until: 'removed', ifUnsupported: 'proceed' },
    /ifUnsupported: 'proceed' would leave each server drained/,
  ],
  [
    'a health check of what is removed',
    { until: 'removed', waitHealthy: '10s' },
    /waitHealthy: with until: 'removed' no server is brought back/,
  ],
  ['a lease that is none', { lease: {} }, /lease: expected a lease with acquire, renew/],
  ['a short lease', { leaseTtl: '500ms' }, /leaseTtl: expected at least 1s/],
  ['the time of a lease without one', { leaseTtl: '3s' }, /leaseTtl.*there is no lease/],
  ['a misspelt option', { maxUnavailible: 2 }, /unknown option 'maxUnavailible'/],
  ['an id of blanks', { id: 'a b' }, /id: expected 1 to 200 letters/],
]

describe('a roll refuses', () => {
  for (const [what, wrong, words] of refused) {
    test(what, () => {
      const { clock, lb } = setUp(3)
      const { act } = actor(clock)
      const call = (): unknown => startRoll(lb, web, { act, clock, ...wrong })
      expect(call).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
      expect(call).toThrow(words)
      expect(lb.requests).toEqual([])
    })
  }

  test('no servers', async () => {
    const { clock, lb } = setUp(3)
    const { act } = actor(clock)
    expect(() => startRoll(lb, [], { act, clock })).toThrow(/target: expected at least one/)
    const error = await thrown(clock.runUntil(roll(lb, { pool: 'nobody' }, { act, clock })))
    expect(isDrainableError(error, 'NOT_FOUND')).toBe(true)
  })

  test('a share below one server, as a percentage gives at least one', async () => {
    const { clock, lb } = setUp(4)
    const { act, most } = actor(clock)
    const all: Roll[] = []
    for (const maxUnavailable of ['0.1%', '49%', '50%', '100%'] as const) {
      const run = startRoll(lb, web, { act, clock, maxUnavailable, keepReady: 0 })
      all.push(run)
      await clock.runUntil(run.done)
    }
    const tickets = await Promise.all(all.map(({ ticket }) => ticket))
    expect(tickets.map(({ roll: data }) => data?.plan.maxUnavailable)).toEqual([1, 1, 2, 4])
    expect(most()).toBe(4)
  })

  test('more canaries than servers', async () => {
    const { clock, lb } = setUp(3)
    const { act } = actor(clock)
    const error = await thrown(clock.runUntil(roll(lb, web, { act, clock, canary: 4 })))
    expect(error).toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/canary: the roll has 3/) as unknown,
    })
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('members without a check, unless told how to see them healthy', async () => {
    const { clock, lb, refs } = setUp(3)
    for (const ref of refs.slice(1)) lb.setHealth(ref, 'unchecked')
    const { act, calls } = actor(clock)
    const error = await thrown(clock.runUntil(roll(lb, web, { act, clock })))
    expect(error).toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(
        /waitHealthy: no balancer checks web\/web2 and 1 more/,
      ) as unknown,
    })
    expect(calls).toEqual([])
    const report = await clock.runUntil(roll(lb, web, { act, clock, waitHealthy: false }))
    expect(report.outcome).toBe('done')
  })

  test('a group whose members have two addresses', async () => {
    const { clock, lb } = setUp(3)
    const { act } = actor(clock)
    const error = await thrown(
      clock.runUntil(roll(lb, web, { act, clock, group: () => 'all of them' })),
    )
    expect(error).toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(
        /web\/web1 \(.*\) and web\/web2 \(.*\) would be one server with two addresses/,
      ) as unknown,
    })
  })

  test('a resume without what its ticket needs', async () => {
    const { clock, lb, refs } = setUp(3)
    for (const ref of refs) lb.setHealth(ref, 'unchecked')
    const tickets = jsonStore()
    const fail = (): Promise<void> => Promise.reject(new Error('exit 1'))
    const healthy = (): Promise<void> => Promise.resolve()
    const options = { act: fail, clock, tickets, id: 'job', waitHealthy: healthy }
    const run = startRoll(lb, web, options)
    await clock.runUntil(run.done)
    const ticket = await run.ticket
    const { act } = actor(clock)
    expect(() => resumeRoll(lb, ticket, { act })).toThrow(/waitHealthy: the roll began with a fun/)
    const other = { act, waitHealthy: healthy, id: 'another' }
    expect(() => resumeRoll(lb, ticket, other)).toThrow(/id: the ticket's is 'job'/)
    expect(() => resumeRoll(lb, { ...ticket, roll: 7 } as never, { act })).toThrow(/roll: /)
    const resumed = resumeRoll(lb, ticket, { act, clock, tickets, waitHealthy: healthy, id: 'job' })
    expect((await clock.runUntil(resumed.done)).outcome).toBe('done')
  })
})
