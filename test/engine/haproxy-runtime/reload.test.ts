/** Reloads, before and during a drain, with and without a way to the old workers. */
import { Agent } from 'node:http'
import { setTimeout as pass } from 'node:timers/promises'
import { drain, isDrainableError, ready, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, site, web1, type Config } from '../../support/haproxy-lab.js'
import { reloadOften } from '../../support/haproxy-soak/reloads.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for([1, 2])(
    'after a reload the drain is back, old workers waited for (%i)',
    async (times, { expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      // 3.2 does not say where its master is.
      const told = Number(engine.series) >= 3.2
      await using lb = haproxyRuntime({
        socket: haproxy.socket,
        ...(told && { master: haproxy.master }),
      })
      const answers = [request(haproxy.port('web'), '/hold', { cookie: 's1' })]
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      let busyAtIdle = -1
      const overruled: unknown[] = []
      drained.on('idle', () => (busyAtIdle = s1.active))
      drained.on('overruled', (event) => overruled.push(event))
      await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
      await drained.inForce
      for (let count = 0; count < times; count += 1) {
        await haproxy.reload()
        await until(
          async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN',
          'the drain is back in the new process',
        )
        answers.push(request(haproxy.port('web'), '/hold', { cookie: 's1' }))
        await until(() => s1.active === 2 + count, 'one more, through the new process')
      }
      await until(
        () => drained.why().some(({ code }) => code === 'old-scope'),
        'why() names the old one',
      )
      expect(drained.report().members[0]?.verifiedIdle).toBe(false)
      s1.release()
      for (const answer of answers) expect(await answer).toMatchObject({ status: 200, cut: false })
      const report = await drained.done
      expect(member(report).lost).toEqual([])
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: true })
      expect(busyAtIdle).toBe(0)
      expect(overruled).toEqual([])
    },
  )

  it.concurrent(
    'a drain that begins during a reload waits for the end of the reload',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const begins = [0, 40, 80, 160]
      for (const later of begins) {
        const reloaded = it.haproxy.reload()
        await pass(later)
        await using lb = it.provider()
        const report = await drain(lb, web1, { timeout: '30s' })
        expect(member(report), `${later} ms after the signal`).toMatchObject({ outcome: 'idle' })
        await reloaded
        await ready(lb, web1)
      }
    },
  )

  // Fifty of them are a matter of `npm run soak -- haproxy --only reloads`, and of the fake.
  it.concurrent(
    'eleven reloads in one drain leave no old process in its state',
    async ({ expect }) => {
      const { outcome, sealed, verifiedIdle, why, ...left } = await reloadOften(engine, 11)
      expect({ outcome, sealed }, why.join()).toEqual({ outcome: 'idle', sealed: true })
      // The old worker may end between two looks: never without a word.
      if (!verifiedIdle) expect(why).not.toEqual([])
      // What is left is the verdict; no process that has ended stays in it.
      expect(left).toMatchObject({ whole: true, scopes: 1 })
      expect(left.growth).toBeLessThan(2_000)
    },
  )

  it.concurrent(
    'after idle a reload during the action does not bring traffic back',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      await drain(lb, web1, { timeout: '20s' }, async () => {
        const before = s1.total
        await haproxy.reload()
        await until(
          async () => (await haproxy.stat('web', 's1', 'status')) === 'MAINT',
          'the door is closed in the new process',
        )
        for (let index = 0; index < 4; index += 1) {
          expect(await request(haproxy.port('web'), '/', { cookie: 's1' })).toMatchObject({
            status: 200,
            server: 's2',
          })
        }
        expect(s1.total - before).toBeLessThanOrEqual(1)
      })
    },
  )

  it.concurrent('an old worker of a reload before the drain is waited for', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await haproxy.reload()
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    await until(
      () => drained.why().some(({ code, text }) => code === 'old-scope' && /ready/.test(text)),
      'not in force',
    )
    s1.release()
    expect((await answer).status).toBe(200)
    const report = await drained.done
    expect(member(report).outcome).toBe('idle')
    // It ended with its last request: that was never seen to end.
    const { lost, verifiedIdle } = member(report)
    expect(verifiedIdle).toBe(lost.length === 0)
  })

  it.concurrent(
    'a reload before the drain, old workers out of reach: refused',
    async ({ expect }) => {
      await using it = await lab({ engine, mode: 'hidden' })
      const { haproxy } = it
      await haproxy.reload()
      await using lb = haproxyRuntime({ socket: haproxy.socket })
      const error: unknown = await drain(lb, web1, { timeout: '10s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'UNSUPPORTED' })
      expect(String(error)).toMatch(/master/)
      expect(String(error)).toMatch(/oldWorkers/)
      expect(await haproxy.stat('web', 's1', 'status')).toBe('no check')
      await using trusting = haproxyRuntime({ socket: haproxy.socket, oldWorkers: 'accept' })
      expect(member(await drain(trusting, web1, { timeout: '10s' }))).toMatchObject({
        outcome: 'idle',
        verifiedIdle: false,
      })
      await using patient = haproxyRuntime({ socket: haproxy.socket, oldWorkers: { within: '1s' } })
      expect(
        member(
          await drain(patient, { pool: 'web', member: 's2' }, { timeout: '20s', keepReady: 0 }),
        ),
      ).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    },
  )

  it.concurrent(
    'a hidden master that never reloaded is refused on 2.6 alone',
    async ({ expect }) => {
      await using it = await lab({ engine, mode: 'hidden' })
      await using lb = haproxyRuntime({ socket: it.haproxy.socket })
      const end: unknown = await drain(lb, web1).catch((cause: unknown) => cause)
      if (engine.series === '2.6') {
        expect(isDrainableError(end, 'UNSUPPORTED')).toBe(true)
        return
      }
      expect(end).toMatchObject({ members: [{ outcome: 'idle', verifiedIdle: false }] })
      expect(JSON.stringify(end)).toContain('start it with -S')
    },
  )

  it.concurrent('a state file brings the drain through the reload', async ({ expect }) => {
    const config: Config = (port) => `
  load-server-state-from-file global
${site(port, 'web')}`
    await using it = await lab({ engine, config, global: '  server-state-file state' })
    const { haproxy } = it
    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    await using drained = startDrain(lb, web1, { timeout: '20s', seal: false })
    await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
    await haproxy.keepState()
    await haproxy.reload()
    expect(await haproxy.stat('web', 's1', 'status')).toMatch(/^DRAIN/)
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  it.concurrent(
    'an answer cut by hard-stop-after is lost, and idle is not verified',
    async ({ expect }) => {
      await using it = await lab({ engine, global: '  hard-stop-after 1s' })
      const { haproxy, s1 } = it
      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
      await drained.inForce
      await haproxy.reload()
      expect((await answer).cut).toBe(true)
      const report = await drained.done
      expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: false })
      expect(member(report).lost).toEqual([expect.objectContaining({ active: 1 })])
    },
  )

  it.concurrent('a server whose id moves on reload stays the same server', async ({ expect }) => {
    const moved: Config = (port) => `
backend first
  server x 127.0.0.1:${port('s2')}
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
  server s0 127.0.0.1:${port('s2')} cookie s0
  server s2 127.0.0.1:${port('s2')} cookie s2
  server s1 127.0.0.1:${port('s1')} cookie s1`
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
    const first = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '20s' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    await drained.inForce
    await haproxy.reload(moved)
    const second = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 2, 'in flight in the new one')
    await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained anew')
    s1.release(1)
    await first
    await until(() => drained.why().some(({ count }) => count === 1), 'the second is counted')
    expect(drained.report().members[0]?.phase).toBe('draining')
    s1.release()
    expect((await second).status).toBe(200)
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(await haproxy.stat('web', 's0', 'status')).toBe('no check')
    expect(await haproxy.stat('web', 's1', 'status')).toBe('MAINT')
  })

  it.concurrent(
    'a keep-alive client of an old worker holds the drain until it leaves',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      // An answer under way at the reload keeps its connection: idle ones are closed then.
      const stream = request(haproxy.port('web'), '/stream', { cookie: 's1', agent })
      await until(() => s1.active === 1, 'in flight')
      await haproxy.reload()
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      // The old worker stays at ready, so the drain is in force in the new one alone.
      await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN', 'drained')
      s1.release()
      expect((await stream).cut).toBe(false)
      expect(s1.active).toBe(0)
      const door = (): boolean =>
        drained.why().some(({ code, text }) => code === 'old-scope' && text.includes('is at ready'))
      await until(door, 'its connection is named')
      // It would still get there, so nothing is idle.
      expect(drained.report().members[0]?.verifiedIdle).toBe(false)
      const again = await request(haproxy.port('web'), '/', { cookie: 's1', agent })
      expect(again.server).toBe('s1')
      agent.destroy()
      // It ends with its last connection, maybe between two looks: that is said then.
      const end = member(await drained.done)
      expect(end.outcome).toBe('idle')
      if (!end.verifiedIdle) expect(end.why).not.toEqual([])
    },
  )

  it.concurrent('a HAProxy killed in mid-drain is unreachable, never idle', async ({ expect }) => {
    await using it = await lab({ engine, mode: 'plain' })
    const { haproxy, s1 } = it
    await using lb = haproxyRuntime({ socket: haproxy.socket, replyTimeout: '300ms' })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '4s' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    await haproxy.signal('SIGKILL')
    expect((await answer).cut).toBe(true)
    expect(member(await drained.done)).toMatchObject({
      outcome: 'unreachable',
      verifiedIdle: false,
    })
  })

  it.concurrent('a HAProxy frozen in mid-drain is waited for, then idle', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider({ replyTimeout: '300ms' })
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '20s' })
    await until(() => drained.why().some(({ count }) => count === 1), 'why() counts one')
    let faults = 0
    drained.on('fault', () => (faults += 1))
    const pid = await haproxy.signal('SIGSTOP')
    s1.release()
    await until(() => faults > 0, 'the silence is noticed')
    expect(drained.report().members[0]?.verifiedIdle).toBe(false)
    process.kill(pid, 'SIGCONT')
    expect((await answer).status).toBe(200)
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })
})
