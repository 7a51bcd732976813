/** What an operator closes on a real HAProxy while a roll has the server is left closed, and said. */
import { roll } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, web1, work } from '../../support/haproxy-lab.js'

const OPTIONS = { group: 'ref', keepReady: 0, waitHealthy: false, timeout: '30s' } as const

describe.each(engines('haproxy'))('an operator beside a roll on HAProxy $version', (engine) => {
  it.concurrent('closes a server further while it drains', async ({ expect }) => {
    await using it = await lab({ engine })
    const request = await work(it)
    await using lb = it.provider()
    const rolling = roll(lb, { pool: 'web' }, { ...OPTIONS, act: () => Promise.resolve() })
    const drains = async (): Promise<boolean> =>
      (await it.haproxy.stat('web', 's1', 'status')).startsWith('DRAIN')
    await until(drains, 'the drain')
    await it.haproxy.cli('set server web/s1 state maint')
    await request.end()
    const report = await rolling
    expect(report).toMatchObject({ outcome: 'done', leftAsFound: [web1], leftDrained: [] })
    expect(await it.haproxy.stat('web', 's1', 'status')).toBe('MAINT')
  })

  it.concurrent('opens a server and closes it again while act runs', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    const told: unknown[] = []
    const report = await roll(
      lb,
      { pool: 'web' },
      {
        ...OPTIONS,
        act: async ({ ref, signal }) => {
          if (ref.member !== web1.member) return
          await it.haproxy.cli('set server web/s1 state ready')
          await until(() => signal.aborted, 'the signal of act')
          told.push(signal.reason)
          await it.haproxy.cli('set server web/s1 state drain')
        },
      },
    )
    expect(told).toMatchObject([
      { code: expect.stringMatching(/DRAIN_OVERRULED|IDLE_LOST/) as unknown },
    ])
    expect(report).toMatchObject({ outcome: 'done', leftAsFound: [web1], leftDrained: [] })
    expect(await it.haproxy.stat('web', 's1', 'status')).toMatch(/^DRAIN/)
  })
})
