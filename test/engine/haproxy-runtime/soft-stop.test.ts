/** A HAProxy that was told to finish its work, as `systemctl stop` with SIGUSR1 does. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, web1, work } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('a soft stop of HAProxy $version', (engine) => {
  it.concurrent.for(['master', 'plain'] as const)(
    'is named as one, and never idle (%s)',
    async (mode, { expect }) => {
      await using it = await lab({ engine, mode })
      await using lb = it.provider({ oldWorkers: 'wait' })
      const working = await work(it)
      await using drained = startDrain(lb, web1, { timeout: '4s' })
      await drained.inForce
      const pid = mode === 'plain' ? await it.haproxy.pid() : (await it.haproxy.processes())[0]!
      process.kill(pid, 'SIGUSR1')
      const texts = (): string => String(drained.why().map(({ text }) => text))
      await until(() => texts().includes('nothing listens there'), 'the silence is noticed')
      expect(texts()).toContain('finishes its work (SIGUSR1)')
      expect(it.s1.active).toBe(1)
      expect(member(await drained.done)).toMatchObject({ outcome: 'unreachable' })
      await working.end()
    },
  )
})
