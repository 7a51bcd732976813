import { drain, type DrainEvent } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { rig, WEB1 } from './rig.js'

/** A machine by its node: its connections are counted there, its queues in its pools. */
const NODE = { pool: '@nodes', member: '10.0.0.1' }

// Queue and connections are two counters: a request can leave the one some time before it is in the other.
test.each([
  ['a member', WEB1],
  ['a node', NODE],
])('a request between the queue and its connection keeps %s from idle', async (_, ref) => {
  using clock = ioClock()
  const slow = { freshness: '4s', minInterval: '2s' } as const
  await using at = await rig({ clock }, slow)
  const { fake, lb } = at
  fake.setLoad(WEB1, { curConns: 1, totConns: 1, depth: 1 })
  clock.setTimeout(() => fake.setLoad(WEB1, { curConns: 0, depth: 0 }), 10_100)
  clock.setTimeout(() => fake.setLoad(WEB1, { curConns: 1, totConns: 2 }), 13_900)
  clock.setTimeout(() => fake.setLoad(WEB1, { curConns: 0 }), 30_000)
  const seen: number[] = []
  const onEvent = ({ type }: DrainEvent): void => {
    if (type === 'idle') seen.push(clock.now())
  }
  const { members } = await clock.run(drain(lb, ref, { timeout: '2m', clock, onEvent }))
  expect(members).toMatchObject([{ outcome: 'idle', verifiedIdle: true }])
  expect(seen[0]).toBeGreaterThan(30_000)
})
