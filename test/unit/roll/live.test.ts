import { describe, expect, test } from 'vitest'
import { combineProviders, startRoll } from 'drainable'
import { actor, setUp, web } from './set-up.js'

describe('two rolls in one process without a lease', () => {
  test('refuse the second, naming the member and the first', async () => {
    const { clock, lb, refs } = setUp(4)
    const { act, calls, most } = actor(clock)
    const first = startRoll(lb, web, { act, clock, id: 'release-1' })
    await clock.advance(100)
    const second = startRoll(lb, [refs[3]!], { act, clock, id: 'release-2' })
    const { error, outcome } = await clock.runUntil(second.done)
    expect(outcome).toBe('stopped')
    expect(error).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(
        /roll 'release-1' has web\/web4, and is under way in this process/,
      ) as unknown,
      ref: refs[3],
    })
    await clock.runUntil(first.done)
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1', 'web4 1'])
    expect(most()).toBe(1)
  })

  test('see the same member behind a combined provider', async () => {
    const { clock, lb, refs } = setUp(4)
    const { act } = actor(clock)
    const first = startRoll(lb, web, { act, clock })
    await clock.advance(100)
    const all = combineProviders({ edge: lb })
    const second = startRoll(all, { pool: 'web', balancer: 'edge' }, { act, clock })
    const { error } = await clock.runUntil(second.done)
    expect(error).toMatchObject({ code: 'CONFLICT', ref: { ...refs[0], balancer: 'edge' } })
    await clock.runUntil(first.done)
  })

  test('run at once over other servers, and one after the other on the same', async () => {
    const { clock, lb, refs } = setUp(4)
    const { act, calls } = actor(clock)
    const both = [refs.slice(0, 2), refs.slice(2)].map((part) =>
      startRoll(lb, part, { act, clock }),
    )
    const reports = await clock.runUntil(Promise.all(both.map(({ done }) => done)))
    expect(reports.map(({ outcome }) => outcome)).toEqual(['done', 'done'])
    const again = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    expect(again.outcome).toBe('done')
    expect(calls).toHaveLength(8)
  })
})
