/** A new master in mid-drain: it lists its own workers only, and those of the one before may be at work. */
import { startDrain, watch } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { Client, lab, member, SEALED_IDLE, web1 } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('another master of HAProxy $version', (engine) => {
  it.concurrent('that takes over leaves the earlier worker counted', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    using client = new Client(haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    await drained.inForce
    await haproxy.takeOver()
    await until(
      async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN',
      'the drain is in the new process',
    )
    s1.release()
    expect((await answer).cut).toBe(false)
    await until(
      () => drained.why().some(({ text }) => /1 connection is left/.test(text)),
      'why() names the connection that is left',
    )
    // The first worker still sends it to the drained server.
    expect((await client.ask('/')).server).toBe('s1')
    expect(member(await drained.done)).toMatchObject({ ...SEALED_IDLE, lost: [] })
    expect(busyAtIdle).toBe(0)
  })

  it.concurrent(
    'before the first look leaves an earlier worker to wait for',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      using client = new Client(haproxy.port('web'), 's1')
      const answer = client.ask('/stream')
      await until(() => s1.active === 1, 'in flight')
      await haproxy.takeOver()
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      let busyAtIdle = -1
      drained.on('idle', () => (busyAtIdle = s1.active))
      await until(
        () => drained.why().some(({ text }) => text.includes('another master runs HAProxy now')),
        'why() names it',
      )
      s1.release()
      expect((await answer).cut).toBe(false)
      client[Symbol.dispose]()
      expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
      expect(busyAtIdle).toBe(0)
    },
  )

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
