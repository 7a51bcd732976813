/** A backend with `disabled` in the configuration: its servers have a state, and no counts. */
import { drain, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import {
  busyAtIdle,
  type Config,
  lab,
  member,
  SEALED_IDLE,
  site,
  untilOldWorker,
  web1,
  work,
} from '../../support/haproxy-lab.js'

const BOTH: Config = (port) => `${site(port, 'api')}${site(port, 'web')}`

const WEB_DISABLED: Config = (port, dir) =>
  BOTH(port, dir).replace('\nbackend web\n', '\nbackend web\n  disabled\n')

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a drain of its server says that it is disabled', async ({ expect }) => {
    await using it = await lab({ engine, config: WEB_DISABLED })
    await using lb = it.provider()
    await expect(drain(lb, web1, { timeout: '5s' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('is disabled in the configuration') as unknown,
    })
  })

  it.concurrent('a drain whose backend a reload disables loses no work', async ({ expect }) => {
    await using it = await lab({ engine, config: BOTH })
    await using lb = it.provider()
    const working = await work(it)
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    const busy = busyAtIdle(drained, it.s1)
    await drained.inForce
    await it.haproxy.reload(WEB_DISABLED)
    await untilOldWorker(drained)
    await working.end()
    expect(member(await drained.done)).toMatchObject({ phase: 'removed', lost: [] })
    expect(busy()).toBeLessThan(1)
  })

  it.concurrent('a reload that disables one leaves drains of others alone', async ({ expect }) => {
    await using it = await lab({ engine, config: BOTH })
    await using lb = it.provider()
    const policy = { timeout: '30s', settle: '2s' } as const
    await using first = startDrain(lb, web1, policy)
    await using other = startDrain(lb, { ...web1, pool: 'api' }, policy)
    await Promise.all([first.inForce, other.inForce])
    await it.haproxy.reload(WEB_DISABLED)
    expect(member(await other.done)).toMatchObject(SEALED_IDLE)
  })
})
