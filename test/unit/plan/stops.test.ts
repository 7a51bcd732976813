import { expect, test } from 'vitest'
import { plan, startRoll, type RollOptions } from 'drainable'
import { actor, setUp, web } from '../roll/set-up.js'

const STOPS = /^as things are now the roll stops at server (\d)/

/** Where the plan says that the roll stops, and what the roll then acts on. web2 is out, so no other server may go. */
async function played(options: Omit<RollOptions, 'act'>): Promise<readonly [string[], string[]]> {
  const { clock, lb } = setUp(3)
  lb.setBehind({ pool: 'web', member: 'web2' }, 'drain')
  const floor = { clock, keepReady: 2, maxUnavailable: 1, ...options }
  const { notes = [] } = await clock.runUntil(plan(lb, web, floor))
  const { act, calls } = actor(clock)
  await clock.runUntil(startRoll(lb, web, { ...floor, act }).done)
  return [notes.flatMap((note) => STOPS.exec(note)?.[1] ?? []), calls]
}

test.each<[string, Omit<RollOptions, 'act'>, string[], string[]]>([
  ['at the first that the floor holds back', {}, ['1'], []],
  ['at one more than may fail', { onFailure: { maxFailed: 1 } }, ['3'], ['web2 1']],
  ['nowhere if it continues', { onFailure: 'continue' }, [], ['web2 1']],
  ['at a canary in any case', { onFailure: 'continue', canary: 1 }, ['1'], []],
])('a plan of a roll says that it stops %s', async (_, options, stops, acted) => {
  expect(await played(options)).toEqual([stops, acted])
})
