/** HAProxy stands still (SIGSTOP, a paused VM) while it holds a request that is in no counter. */
import { setTimeout as pass } from 'node:timers/promises'
import { plan, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { lab, member, web1 } from '../../support/haproxy-lab.js'
import { type Pauses, retryUnderPauses } from '../../support/haproxy-soak/pauses.js'

interface Case extends Pauses {
  readonly is: string
}

/** Pauses during a turn-around of 1 s. */
// Every moment of it by every length: `npm run soak -- haproxy --only pauses`.
const PAUSES: readonly Case[] = [
  { is: 'of 100 ms', pauses: [[850, 100]] },
  { is: 'of 300 ms', pauses: [[300, 300]] },
  { is: 'of 1 s', pauses: [[600, 1_000]] },
  { is: 'of 2 s at its end', pauses: [[900, 2_000]] },
  { is: 'of 4 s', pauses: [[100, 4_000]] },
  {
    is: 'of 200 ms, three times',
    pauses: [
      [100, 200],
      [400, 200],
      [700, 200],
    ],
  },
  { is: 'of 2 s, of master and workers', pauses: [[500, 2_000]], whole: true },
  { is: 'of 2 s, found in maint', pauses: [[500, 2_000]], found: 'maint' },
  { is: 'of 100 ms, of all, found in maint', pauses: [[850, 100]], whole: true, found: 'maint' },
]

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  // Each has a HAProxy of its own, because a pause stops all that is in it.
  it.concurrent.for(PAUSES)(
    'a retry that outlasts pauses $is is noticed',
    async (pauses, { expect }) => {
      const { server, arrived, early, ...report } = await retryUnderPauses(engine, pauses)
      // Under maint 2.6 sends the retry elsewhere.
      if (pauses.found === undefined) expect(server).toBe('s1')
      expect(arrived).toBe(server === 's1' ? 1 : 0)
      if (server === 's1') expect(early).toBe(false)
      expect(report).toEqual({ outcome: 'idle', verifiedIdle: true })
    },
  )

  it.concurrent('a pause over the first look refuses no drain', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    await plan(lb, web1) // the look alone meets the pause
    const pid = await it.haproxy.pid()
    process.kill(pid, 'SIGSTOP')
    const drained = startDrain(lb, web1, { timeout: '8s' })
    await pass(2_500)
    process.kill(pid, 'SIGCONT')
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle' })
  })
})
