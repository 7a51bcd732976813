import { expect, test } from 'vitest'
import { drain, isDrainableError, ready, startDrain, startRoll } from 'drainable'
import { thrown } from '../core/set-up.js'
import { a1, b1, bare, setUp } from './set-up.js'

test('a hold that no look has shown yet is reported as held', async () => {
  const { clock, a, b, all } = setUp({}, { a: { latency: 5 }, b: { latency: 5 } })
  const abort = new AbortController()
  const run = startDrain(all, [a1, b1], { clock, signal: abort.signal })
  const unseen = (): boolean => [a, b].every((lb) => lb.state(bare) === 'drain')
  while (!unseen()) await clock.advance(1)
  abort.abort(new Error('stop'))
  const { members } = await clock.runUntil(run.done)
  expect(members.map(({ ref, held }) => [ref, held])).toEqual([
    [a1, true],
    [b1, true],
  ])
})

test('a hold that no look has shown yet is named without a state', async () => {
  const { clock, a, b, all } = setUp({}, { a: { latency: 5 }, b: { latency: 5 } })
  const failed = thrown(drain(all, [a1, b1], { clock, timeout: '5s' }))
  const haveLooked = (): boolean =>
    [a, b].every(({ requests }) => requests.some(({ verb }) => verb === 'observe'))
  while (!haveLooked()) await clock.advance(1)
  for (const lb of [a, b]) lb.failNext('throw', { verb: 'observe', times: 1_000 })
  const error = await clock.runUntil(failed)
  expect(isDrainableError(error) && error.message).toMatch(
    /; held: a:web\/web1 \(state not known\), b:web\/web1 \(state not known\)$/,
  )
})

test('ready() that one balancer does not answer says nothing of the others', async () => {
  const { clock, a, b, all } = setUp()
  for (const lb of [a, b]) lb.setBehind(bare, 'maint')
  b.failNext('hang', { verb: 'observe', times: 1_000 })
  const error = await clock.runUntil(thrown(ready(all, [a1, b1], { clock })))
  expect(a.state(bare)).toBe('ready')
  expect(isDrainableError(error) && error.message).toMatch(/^b: .*before the deadline$/)
})

test('a roll that is refused later says that this drain changed nothing', async () => {
  const { clock, b, all } = setUp()
  const run = startRoll(
    all,
    ['a', 'b'].map((balancer) => ({ pool: 'web', balancer })),
    {
      clock,
      keepReady: 2,
      act: async () => b.setBehind({ pool: 'web', member: 'web3' }, 'maint'),
    },
  )
  const { error } = await clock.runUntil(run.done)
  expect(error?.message).toMatch(
    /^b: web\/web2 was not drained: .*; this drain changed nothing on any balancer$/,
  )
})
