import { expect, test } from 'vitest'
import { drain } from 'drainable'
import type { Duration } from 'drainable/provider'
import { web1 } from '../set-up.js'
import { rig } from '../rig.js'

/** What a drain says that has this time for a proof that takes so long. */
async function said(blind: number, timeout: Duration): Promise<string> {
  const { clock, lb } = rig({ capabilities: { blind } })
  const ended = drain(lb, web1, { clock, settle: 0, timeout }).then(() => 'idle', String)
  return clock.runUntil(ended)
}

test.each([
  [5_007, '5s', '5.1 s', '5.1s'],
  [5_000, '4900ms', '5 s', '5s'],
  [61_200, '60s', '1 m 2 s', '62s'],
  [1_700, '1.5s', '1.7 s', '1.7s'],
] as const)(
  'the shortest timeout that is named for %i ms is long enough',
  async (ms, short, named, given) => {
    expect(await said(ms, short)).toContain(`expected at least ${named}: this`)
    expect(await said(ms, given)).not.toContain('expected at least')
  },
)
