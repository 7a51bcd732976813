/** A log prints an error with its causes: what a message has already is not told again by its cause. */
import {
  combineProviders,
  drain,
  isDrainableError,
  plan,
  ready,
  roll,
  type DrainableProvider,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { expect, it } from 'vitest'
import { thrown, web1 } from '../set-up.js'

const pools = { web: ['web1', 'web2'] }
const clock = fakeClock()
const broke = new Error('install broke')
const act = (): never => {
  throw broke
}

function gone(): FakeProvider {
  const lb = fakeProvider({ pools, clock })
  lb.disconnect()
  return lb
}

function busy(): FakeProvider {
  const lb = fakeProvider({ pools, clock })
  lb.occupy(web1)
  return lb
}

const both = (b: DrainableProvider) => combineProviders({ a: fakeProvider({ pools, clock }), b })

const address = { address: '192.0.2.1' }
const waitHealthy = false

it.each<[string, () => Promise<unknown>]>([
  ['a drain', () => drain(gone(), web1, { timeout: '10s', clock })],
  ['a drain on one of two', () => drain(both(gone()), address, { timeout: '10s', clock })],
  ['a plan on one of two', () => plan(both(gone()), address, { clock })],
  ['a ready() on one of two', () => ready(both(gone()), address, { timeout: '10s', clock })],
  ['a roll on one of two', () => roll(both(gone()), address, { act, timeout: '10s', clock })],
  ['an act', () => roll(fakeProvider({ pools, clock }), web1, { act, waitHealthy, clock })],
  [
    'an act, where no other server has a place',
    () =>
      roll(fakeProvider({ pools, clock }), { pool: 'web' }, { act, onFailure: 'continue', clock }),
  ],
  ['a drain of a roll', () => roll(busy(), web1, { act, timeout: '5s', clock })],
])('the error of %s is no cause of its own words', async (_, call) => {
  const error = await clock.runUntil(thrown(call()))
  expect(isDrainableError(error)).toBe(true)
  for (let at = error; isDrainableError(at); at = at.cause)
    if (isDrainableError(at.cause)) expect(at.message).not.toContain(at.cause.message)
})

it('the error of a roll has what act threw as its cause', async () => {
  const lb = fakeProvider({ pools, clock })
  const error = await clock.runUntil(thrown(roll(lb, web1, { act, waitHealthy, clock })))
  expect(error).toMatchObject({ code: 'ROLL_STOPPED', cause: broke })
})
