import { expect, test } from 'vitest'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { plan, startRoll, type RollOptions } from 'drainable'
import { actor, seenAs, setUp, web } from '../roll/set-up.js'

const FLOOR = ['POOL_AT_MINIMUM']
const STOPS = /^as things are now the roll stops at server (\d)/

/** Where the plan says that the roll stops, what refuses it, and what the roll then acts on. web2 is out, so no other may go. */
async function played(
  options: Omit<RollOptions, 'act'>,
): Promise<readonly [string[], string[], string[]]> {
  const { clock, lb } = setUp(3)
  lb.setBehind({ pool: 'web', member: 'web2' }, 'drain')
  const floor = { clock, keepReady: 2, maxUnavailable: 1, ...options }
  const { notes = [], refused } = await clock.runUntil(plan(lb, web, floor))
  const { act, calls } = actor(clock)
  await clock.runUntil(startRoll(lb, web, { ...floor, act }).done)
  return [
    notes.flatMap((note) => STOPS.exec(note)?.[1] ?? []),
    refused.map(({ code }) => code),
    calls,
  ]
}

test.each<[string, Omit<RollOptions, 'act'>, string[], string[], string[]]>([
  ['at the first that the floor holds back', {}, ['1'], FLOOR, []],
  ['at one more than may fail', { onFailure: { maxFailed: 1 } }, ['3'], [], ['web2 1']],
  ['nowhere if it continues', { onFailure: 'continue' }, [], [], ['web2 1']],
  ['and what has begun beside it', { maxUnavailable: 2 }, ['1'], [], ['web2 1']],
  ['at a canary in any case', { onFailure: 'continue', canary: 1 }, ['1'], FLOOR, []],
])('a plan of a roll says that it stops %s', async (_, options, stops, refused, acted) => {
  expect(await played(options)).toEqual([stops, refused, acted])
})

test('a roll that goes on is refused if the floor lets no server go', async () => {
  const { clock, lb } = setUp(3)
  const {
    refused,
    steps,
    notes = [],
  } = await clock.runUntil(
    plan(lb, web, { clock, keepReady: 3, maxUnavailable: 1, onFailure: 'continue' }),
  )
  expect(refused.map(({ code, ref }) => [code, ref?.member])).toEqual(
    ['web1', 'web2', 'web3'].map((member) => ['POOL_AT_MINIMUM', member]),
  )
  expect(steps).toEqual([])
  expect(notes.join()).not.toMatch(/idle is expected/)
})

test('a roll that waits for the floor is not refused by it', async () => {
  const { clock, lb } = setUp(3)
  const floor = { clock, keepReady: 3, maxUnavailable: 1, onMinimum: 'wait' } as const
  expect((await clock.runUntil(plan(lb, web, floor))).refused).toEqual([])
})

test('a plan says, as its roll does, that members of one address can be taken one by one', async () => {
  const clock = fakeClock(1_000)
  const inner = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock })
  const lb = seenAs(inner, (one) => ({ ...one, address: '10.0.0.1' }))
  const found = await clock.runUntil(plan(lb, web, { clock, maxUnavailable: 1 }))
  const { act } = actor(clock)
  const { servers } = await clock.runUntil(startRoll(lb, web, { clock, act }).done)
  const words = servers[0]?.error?.message ?? ''
  expect(words).toContain("or take its members one by one with group: 'ref'")
  expect(found.refused.map(({ message }) => message)).toEqual([words])
  expect(found.held.map(({ reason }) => reason)).toEqual(
    ['web1', 'web2', 'web3'].map(() => `server 1 of 1; not begun: ${words}`),
  )
})
