/** HAProxy without a master: nothing on its socket says that it replaced another process. */
import { setTimeout as pass } from 'node:timers/promises'
import { drain, ready, select, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { busyAtIdle, lab, member, SEALED_IDLE, web1, work } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('plain HAProxy $version', (engine) => {
  it.concurrent('idle is verified once it has run for longer than within', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    await using lb = it.provider()
    const seen = member(await drain(lb, web1, { timeout: '20s' }))
    expect(seen).toMatchObject({ outcome: 'idle', verifiedIdle: false, sealed: true })
    expect(String(seen.why.map(({ text }) => text))).toContain('runs without a master')
    await ready(lb, web1)
    await using patient = it.provider({ oldWorkers: { within: '10ms' } })
    expect(member(await drain(patient, web1, { timeout: '20s' }))).toMatchObject(SEALED_IDLE)
  })

  it.concurrent.for([{}, { oldWorkers: 'accept' }] as const)(
    'reloaded with -sf before the first look: idle is not verified, %j',
    async (options, { expect }) => {
      await using it = await lab({ engine, mode: 'plain' })
      const { haproxy, s1 } = it
      const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
      await until(() => s1.active === 1, 'in flight')
      await haproxy.reload()
      await using lb = it.provider(options)
      const report = await drain(lb, web1, { timeout: '20s' })
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
      expect(JSON.stringify(report)).toContain('haproxy -sf')
      expect(s1.active).toBe(1)
      s1.release()
      await answer
    },
  )

  it.concurrent.for(['before', 'in'] as const)(
    'a process that is replaced %s a drain is unread, and never idle',
    async (when, { expect }) => {
      await using it = await lab({ engine, mode: 'plain' })
      const working = await work(it)
      await using lb = it.provider()
      await select(lb, web1)
      if (when === 'before') await it.haproxy.reload()
      await using drained = startDrain(lb, web1, { timeout: '4s' })
      const busy = busyAtIdle(drained, it.s1)
      await until(async () => (await it.haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
      if (when === 'in') await it.haproxy.reload()
      const unread = (): boolean =>
        drained
          .why()
          .some(
            ({ code, text }) => code === 'unreadable' && text.includes('give the master socket'),
          )
      await until(unread, 'the process of before is named')
      expect(member(await drained.done)).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
      expect(busy()).toBe(-1)
      await working.end()
    },
  )

  it.concurrent('a process that finishes its work beside it is not seen', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const working = await work(it)
    await it.haproxy.succeed()
    await using lb = it.provider()
    const seen = member(await drain(lb, web1, { timeout: '60s' }))
    expect(seen).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(String(seen.why.map(({ text }) => text))).toContain('runs without a master')
    await working.end()
  })

  it.concurrent(
    'under within, idle waits until the predecessor must have gone',
    async ({ expect }) => {
      await using it = await lab({ engine, mode: 'plain', global: '  hard-stop-after 1s' })
      const { haproxy, s1 } = it
      const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
      await until(() => s1.active === 1, 'in flight')
      await haproxy.reload()
      await using lb = it.provider({ oldWorkers: { within: '1s' } })
      const report = await drain(lb, web1, { timeout: '20s' })
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(s1.active).toBe(0)
      expect((await answer).cut).toBe(true)
    },
  )

  it.concurrent('within lasts longer when both processes stood still', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain', global: '  hard-stop-after 3s' })
    const { haproxy, s1 } = it
    const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    const before = await haproxy.pid()
    await haproxy.reload()
    await using lb = it.provider({ oldWorkers: { within: '3s' } })
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
    const pids = [before, await haproxy.pid()]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    // The time that is waited for goes by, and none of it for them.
    await pass(6_000)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(busyAtIdle).toBe(0)
    expect((await answer).cut).toBe(true)
  })
})
