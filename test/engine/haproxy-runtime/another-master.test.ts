/** A new master in mid-drain: it lists its own workers only, and those of the one before may be at work. */
import { startDrain, watch } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { busyAtIdle, lab, member, SEALED_IDLE, web1, work } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('another master of HAProxy $version', (engine) => {
  it.concurrent('that takes over leaves the earlier worker unread', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    const working = await work(it)
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '5s' })
    const busy = busyAtIdle(drained, s1)
    await drained.inForce
    await haproxy.takeOver()
    await until(
      () => drained.why().some(({ text }) => text.includes('another master runs HAProxy now')),
      'why() names it',
    )
    expect(member(await drained.done)).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    expect(busy()).toBe(-1)
    await working.end()
  })

  it.concurrent('after a restart does not delay the drain', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy } = it
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '60s', settle: '3s' })
    await drained.inForce
    await haproxy.restart()
    expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
  })

  it.concurrent('after a restart before the drain does not delay the drain', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy } = it
    await using lb = it.provider()
    await using seen = watch(lb, web1)
    await until(() => seen.report().members[0]?.phase === 'active', 'seen')
    await haproxy.restart()
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })
})
