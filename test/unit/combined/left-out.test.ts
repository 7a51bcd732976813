import { expect, test } from 'vitest'
import { drain, type DrainReport } from 'drainable'
import { setUp } from './set-up.js'

/** As `setUp`, with the time that every real balancer takes to answer, and one server that only `a` has. */
function withLatency() {
  return setUp(
    {},
    {
      a: { latency: 2, pools: { web: ['web1', 'web2', 'web3'] } },
      b: { latency: 2, pools: { other: ['web1'] } },
    },
  )
}

test('a balancer without the address does not end the drain', async () => {
  const { clock, a, all } = withLatency()
  const { readings } = await clock.runUntil(
    a.observe('all', { clock, signal: new AbortController().signal }),
  )
  const found = readings.find(({ ref }) => ref.member === 'web2')
  const address = found?.present === true ? (found.address ?? '') : ''
  let ended: DrainReport | undefined
  const report = await clock.runUntil(
    drain(
      all,
      { address },
      {
        clock,
        timeout: '30s',
        onEvent: (e) => {
          if (e.type === 'end') ended = e.report
        },
      },
    ),
  )
  expect(report.outcome).toBe('idle')
  expect(ended?.members.map(({ ref, outcome }) => [ref.balancer, outcome])).toEqual([['a', 'idle']])
})
