/** HAProxy without a master: nothing on its socket says that it replaced another process. */
import { setTimeout as pass } from 'node:timers/promises'
import { drain, select, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { Client, lab, member, web1 } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('plain HAProxy $version', (engine) => {
  it.concurrent('a process started alone proves idle by its arguments', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    await using lb = it.provider()
    expect(member(await drain(lb, web1, { timeout: '20s' }))).toMatchObject({
      outcome: 'idle',
      verifiedIdle: true,
      sealed: true,
    })
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

  // No connection was kept to it, so it can't be asked; the system shows it, and its end.
  it.concurrent('a process seen only by select() is waited for', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const { haproxy, s1 } = it
    using client = new Client(haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => s1.active === 1, 'in flight')
    await using lb = it.provider()
    await select(lb, 'all')
    await haproxy.reload()
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    const unread = (): boolean => drained.why().some(({ code }) => code === 'unreadable')
    await until(unread, 'the process of before is named')
    await pass(2_000) // longer than the quiet time
    expect(busyAtIdle).toBe(-1)
    s1.release()
    expect((await answer).cut).toBe(false)
    client[Symbol.dispose]()
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(busyAtIdle).toBe(0)
  })

  it.concurrent('an unknown process beside it leaves idle unverified', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const { haproxy, s1 } = it
    using client = new Client(haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => s1.active === 1, 'in flight')
    await haproxy.succeed()
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    const seen = member(await drained.done)
    expect(seen).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(seen.why.map(({ text }) => text).join()).toContain('another haproxy')
    s1.release()
    expect((await answer).cut).toBe(false)
    client[Symbol.dispose]()
    await drained.restore()
    // Once that has ended the next drain is proved.
    await until(
      async () => {
        await using next = startDrain(lb, web1, { timeout: '60s' })
        const { verifiedIdle } = member(await next.done)
        await next.restore()
        return verifiedIdle
      },
      'verified',
      20_000,
    )
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

  // Nothing shows it there: neither the system, nor a connection that was kept to it.
  it.concurrent('over TCP a process that was only met is unread', async ({ expect }) => {
    const global = `  stats socket ipv4@127.0.0.1:\${CLI} level admin`
    await using it = await lab({ engine, mode: 'plain', global })
    const { haproxy, s1 } = it
    const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using lb = haproxyRuntime({ socket: { host: '127.0.0.1', port: haproxy.cliPort } })
    await select(lb, 'all')
    await haproxy.reload()
    await select(lb, 'all') // whoever looks first after the reload
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    const unread = (): boolean => drained.why().some(({ code }) => code === 'unreadable')
    await until(unread, 'the process of before is named')
    await pass(2_000) // longer than the quiet time
    expect(busyAtIdle).toBe(-1)
    s1.release()
    await answer
  })

  it.concurrent('over TCP nothing proves that a process was started alone', async ({ expect }) => {
    const global = `  stats socket ipv4@127.0.0.1:\${CLI} level admin`
    await using it = await lab({ engine, mode: 'plain', global })
    await using lb = haproxyRuntime({ socket: { host: '127.0.0.1', port: it.haproxy.cliPort } })
    expect(member(await drain(lb, web1, { timeout: '20s' }))).toMatchObject({
      outcome: 'idle',
      verifiedIdle: false,
    })
  })
})
